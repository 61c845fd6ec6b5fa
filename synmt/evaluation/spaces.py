"""Judges by its script whether a text has spaces between its words, which most metrics need."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from synmt.arrays import Texts
from synmt.evaluation.sacrebleu import tokenize_words

_KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_EAST = f"\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff{_KANA}"
_SOUTH = "\u0e00-\u109f\u1780-\u17ff\u1950-\u1aaf\ua980-\ua9ff\uaa60-\uaadf"
_SCRIPTS = ((re.compile(f"[{_EAST}]"), 3), (re.compile(f"[{_SOUTH}]"), 8))
"""Characters of Chinese and Japanese, and of Thai, Lao, Tibetan, Burmese, Khmer and their
neighbours; and for each how many there are between two spaces, at least, in text that is not
segmented. Its words have 1.8 and 5, its phrases 12."""
_LETTERS_OF_A_CHARACTER = 3
"""In Latin script; a Japanese text may name many things in it."""
_SAMPLE = 1000

_FOR_SCRIPTS = "char or flores200 (for Chinese also zh, for Japanese ja-mecab)"
"""The tokenizations that suit these scripts."""

_METRICS_OF_WORDS = ("chrf++", "ter", "ribes")
"""Metrics that always split words at spaces."""

_logger = logging.getLogger(__name__)


def warn_of_unspaced(
    name: str,
    lines: Texts,
    metrics: Iterable[str],
    tokenize: str,
) -> None:
    """Warn of metrics that find no words in a text without spaces.

    name: the text's.
    metrics: names in `metrics.METRICS`.
    tokenize: the tokenization of BLEU.
    """
    lines, metrics = lines[:_SAMPLE], list(metrics)
    if not looks_unspaced(lines):
        return
    what = f"{name} has no spaces between words"
    if any(metric.startswith("bleu") for metric in metrics) and looks_unspaced(
        [" ".join(words) for words in tokenize_words(lines, tokenize)]
    ):
        _logger.warning(f"{what}; BLEU needs the tokenization {_FOR_SCRIPTS}")
    if of_words := [metric for metric in metrics if metric in _METRICS_OF_WORDS]:
        _logger.warning(f"{what}; {', '.join(of_words)} would need them")


def looks_unspaced(lines: Texts) -> bool:
    """Return whether a text is in a script without spaces between words, and has not been
    segmented."""
    words = [word for line in lines for word in line.split()]
    counts_of_words = [[len(script.findall(word)) for script, _ in _SCRIPTS] for word in words]
    characters = [sum(counts) for counts in zip(*counts_of_words, strict=True)]
    letters = sum(sum(map(str.isalpha, word)) for word in words)
    if not characters or _LETTERS_OF_A_CHARACTER * sum(characters) < letters - sum(characters):
        return False
    of_script = sum(any(counts) for counts in counts_of_words)
    expected = sum(count / length for count, (_, length) in zip(characters, _SCRIPTS, strict=True))
    # where no line has two such words, they are the lines
    lines_of_script = sum(any(script.search(line) for script, _ in _SCRIPTS) for line in lines)
    return 0 < of_script <= max(expected, lines_of_script)
