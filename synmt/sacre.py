"""BLEU, chrF and TER by sacreBLEU, taken apart into statistics and an aggregate.

sacreBLEU keeps both behind internal methods. This is the one file that calls them; the tests compare every
number with sacreBLEU's public functions, so that a change there shows here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sacrebleu.metrics.base import Metric as Inner
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from synmt.errors import SynmtError, UsageError, did_you_mean
from synmt.files import offline
from synmt.metrics import DoubleArray, Metric, MetricOptions


def bleu(options: MetricOptions) -> Metric:
    """Make BLEU (Papineni et al., 2002) with the tokenisation and case asked for."""
    _check_tokenization(options.tokenize)
    try:
        # force: sacreBLEU's own remark on tokenised text would bypass --quiet
        return _Sacre(BLEU(lowercase=options.lowercase, tokenize=options.tokenize, force=True))
    except (RuntimeError, ImportError):
        raise SynmtError(
            f"the tokenisation '{options.tokenize}' needs packages that are not installed",
            do=f"Install them with `pip install 'sacrebleu[{options.tokenize[:2]}]'`",
        ) from None
    except OSError as error:
        raise SynmtError(
            f"cannot get the model of the tokenisation '{options.tokenize}' ({error})",
            do="Try again with a network, or choose another, such as `--tokenize 13a`",
        ) from None


def chrf(options: MetricOptions) -> Metric:
    """Make chrF2 (Popović, 2015) with the case asked for."""
    return _Sacre(CHRF(lowercase=options.lowercase))


def ter(options: MetricOptions) -> Metric:
    """Make TER (Snover et al., 2006), which ignores case and cuts at spaces, as sacreBLEU's does."""
    return _Sacre(TER(), higher_is_better=False)


class _Sacre(Metric):
    def __init__(self, inner: Inner, *, higher_is_better: bool = True) -> None:
        self._inner = inner
        self.higher_is_better = higher_is_better
        # sacreBLEU knows the full name and the number of references only once it has counted something
        counted = inner._extract_corpus_statistics(["word"], [["word"]])
        self.title = inner._compute_score_from_stats(counted[0]).name
        self.signature = str(inner.get_signature())

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> DoubleArray:
        return np.array(self._inner._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)

    def aggregate(self, totals: DoubleArray) -> float:
        return float(self._inner._compute_score_from_stats(totals.tolist()).score)


def _check_tokenization(name: str) -> None:
    if name not in BLEU.TOKENIZERS:
        raise UsageError(
            f"there is no tokenisation '{name}'",
            allowed=f"Tokenisations: {', '.join(BLEU.TOKENIZERS)}",
            do=did_you_mean(name, BLEU.TOKENIZERS),
        )
    if name in SPM_MODELS and offline():
        address = SPM_MODELS[name]["url"]
        place = Path(SACREBLEU_DIR) / "models" / Path(address).name
        if not place.exists():
            raise SynmtError(
                f"the tokenisation '{name}' needs a model, and SYNMT_OFFLINE forbids the network",
                do=f"Put {address} at {place}",
            )
