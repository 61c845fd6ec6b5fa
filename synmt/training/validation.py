"""Validation by BLEU: translates the validation text, and scores it as the test sets will be
scored."""

from __future__ import annotations

from collections.abc import Callable

from synmt.data.stream import Reader
from synmt.data.vocabulary import Vocabulary
from synmt.decode.translator import translate_batches
from synmt.evaluation.metrics import score_system
from synmt.evaluation.spaces import warn_of_unspaced
from synmt.files.reading import read_lines
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe.schema import Recipe
from synmt.tokenization.word_tokenizer import RAW
from synmt.training.preparation import Prepared


def validation_bleu(
    recipe: Recipe, prepared: Prepared, valid: Reader, target: Vocabulary
) -> Callable[[Seq2Seq], float]:
    """Make the function that translates the validation text and computes its BLEU."""
    on_tokens, tokenizer = recipe.evaluation.on == "tokens", prepared.tokenizers.get("target", RAW)
    corpus = prepared.corpus if on_tokens else prepared.raw or prepared.corpus
    text = list(read_lines(corpus.valid.target))
    if tokenizer.recipe.already_cut and not on_tokens:
        text = [tokenizer.join(line) for line in text]
    tokenize = recipe.evaluation.tokenize
    warn_of_unspaced(
        corpus.valid.target.name, text, ("bleu",), tokenize, option="`evaluation.tokenize`"
    )
    references = [text[example.line] for example in valid.split.rows(range(len(valid.split)))]
    settings = recipe.decoding.model_copy(
        update={"beam_size": recipe.training.validation_beam_size}
    )
    lowercase = recipe.evaluation.lowercase

    def score(model: Seq2Seq) -> float:
        hypotheses = translate_batches(model, valid.once(), settings, target)
        hypotheses = hypotheses if on_tokens else [tokenizer.join(line) for line in hypotheses]
        return score_system(
            hypotheses, references, ("bleu",), tokenize=tokenize, lowercase=lowercase
        )["bleu"].value

    return score
