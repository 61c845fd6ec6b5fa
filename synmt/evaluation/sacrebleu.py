"""BLEU, chrF, chrF++ and TER by sacreBLEU, split into statistics and an aggregate.

sacreBLEU has only internal methods for both. This is the only file that calls them; the tests
compare every number with sacreBLEU's public functions, and so notice a change.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from sacrebleu.metrics.base import Metric as Inner
from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from synmt.arrays import DoubleArray, Texts
from synmt.errors import SynmtError, unknown_name
from synmt.evaluation.metrics import Metric, MetricOptions
from synmt.files.reading import offline

_logger = logging.getLogger(__name__)

_BLEU_ORDER = 4
_TOKENIZED = 100
"""Texts that end in a full stop after a space: as many are a tokenized text, as in sacreBLEU."""


def bleu(options: MetricOptions, order: int = _BLEU_ORDER) -> Metric:
    """Make BLEU (Papineni et al., 2002) of n-grams of up to `order` words.

    BLEU-1 is the precision of single words times the brevity penalty.
    """
    with _checked(options.tokenize):
        # force: sacreBLEU's warning about tokenized text would ignore --quiet
        return _Bleu(
            BLEU(
                lowercase=options.lowercase,
                tokenize=options.tokenize,
                force=True,
                max_ngram_order=order,
            )
        )


bleu1, bleu2, bleu3 = (partial(bleu, order=order) for order in (1, 2, 3))


def chrf(options: MetricOptions) -> Metric:
    """Make chrF2 (Popović, 2015) with the case of the options."""
    return _Sacre(CHRF(lowercase=options.lowercase))


def chrf_plus_plus(options: MetricOptions) -> Metric:
    """Make chrF2++ (Popović, 2017): chrF2 with words and pairs of words in addition to
    characters."""
    return _Sacre(CHRF(lowercase=options.lowercase, word_order=2))


def ter(options: MetricOptions) -> Metric:
    """Make TER (Snover et al., 2006), with sacreBLEU's defaults: it ignores case and splits at
    spaces."""
    return _Sacre(TER(), higher_is_better=False)


class _Sacre(Metric):
    def __init__(self, inner: Inner, *, higher_is_better: bool = True) -> None:
        self._inner = inner
        self.higher_is_better = higher_is_better
        # sacreBLEU knows the full name and the number of references only after it has counted
        # something
        counted = inner._extract_corpus_statistics(["word"], [["word"]])
        self.title = inner._compute_score_from_stats(counted[0]).name
        self.signature = str(inner.get_signature())

    def statistics(
        self, hypotheses: Texts, references: Texts, sources: Texts | None = None
    ) -> DoubleArray:
        return np.array(
            self._inner._extract_corpus_statistics(hypotheses, [references]), dtype=float
        )

    def aggregate(self, totals: DoubleArray) -> float:
        return float(self._inner._compute_score_from_stats(totals.tolist()).score)


class _Bleu(_Sacre):
    def __init__(self, inner: BLEU) -> None:
        super().__init__(inner)
        order = inner.max_ngram_order
        if order != _BLEU_ORDER:
            # sacreBLEU's signature leaves out the order
            signature = inner.get_signature()
            signature.update("order", order)
            self.title, self.signature = f"BLEU-{order}", str(signature)

    def statistics(
        self, hypotheses: Texts, references: Texts, sources: Texts | None = None
    ) -> DoubleArray:
        """Count n-grams; warns of a tokenized text that is tokenized once more."""
        full_stops = sum(line.rstrip().endswith(" .") for line in hypotheses)
        if "|tok:13a|" in self.signature and full_stops >= _TOKENIZED:
            _logger.warning("the text looks tokenized: BLEU needs the tokenization `none`")
        return super().statistics(hypotheses, references)

    def details(self, totals: DoubleArray) -> dict[str, float]:
        """Compute smoothed precisions in percent, brevity penalty and length ratio, as sacreBLEU
        prints them."""
        bleu = cast(BLEUScore, self._inner._compute_score_from_stats(totals.tolist()))
        precisions = {
            f"precision_{n}": float(value) for n, value in enumerate(bleu.precisions, start=1)
        }
        return {**precisions, "brevity_penalty": float(bleu.bp), "length_ratio": float(bleu.ratio)}

    def segment_scores(self, statistics: DoubleArray) -> DoubleArray:
        """Compute sentence BLEU, without orders longer than the sentence, as `sentence_bleu`
        does."""
        inner = copy(self._inner)
        cast(BLEU, inner).effective_order = True
        return np.array(
            [inner._compute_score_from_stats(row).score for row in statistics.tolist()], dtype=float
        )


def tokenize_words(lines: Texts, tokenize: str) -> list[list[str]]:
    """Tokenize lines as BLEU does, in their own case."""
    with _checked(tokenize):
        tokenizer = BLEU(tokenize=tokenize, force=True).tokenizer
        return [tokenizer(line).split() for line in lines]


@contextmanager
def _checked(name: str) -> Iterator[None]:
    """Raise errors that say what to do for a tokenization that does not exist, or that cannot be
    used here."""
    if name not in BLEU.TOKENIZERS:
        raise unknown_name("tokenization", name, BLEU.TOKENIZERS)
    if name in SPM_MODELS and offline():
        address = SPM_MODELS[name]["url"]
        place = Path(SACREBLEU_DIR) / "models" / Path(address).name
        if not place.exists():
            what = f"the tokenization '{name}' needs a model, and SYNMT_OFFLINE forbids the network"
            raise SynmtError(what, do=f"Put {address} at {place}")
    try:
        yield
    except (RuntimeError, ImportError, OSError) as error:
        raise SynmtError(
            f"the tokenization '{name}' needs packages or a model that are not here ({error})",
            do=f"Install packages with `pip install 'sacrebleu[{name[:2]}]'`; a model needs a "
            "network connection",
        ) from None
