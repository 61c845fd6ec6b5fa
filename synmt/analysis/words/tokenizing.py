"""Lines tokenized as BLEU does."""

from __future__ import annotations

from collections.abc import Sequence

from synmt.analysis.words.matching import TokenizedText
from synmt.evaluation.metrics import MetricOptions
from synmt.evaluation.sacrebleu import tokenize_words


def tokenize_text(lines: Sequence[str], options: MetricOptions) -> TokenizedText:
    """Cut lines into words; they keep their case (see `in_case`)."""
    return TokenizedText(tokenize_words(lines, options.tokenize))


def in_case(text: TokenizedText, options: MetricOptions) -> TokenizedText:
    """Put words into lower case if the options ignore case, to compare them."""
    return TokenizedText([[word.lower() for word in words] for words in text.lines]) if options.lowercase else text
