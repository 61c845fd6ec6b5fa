"""A finished run of a small model with random weights, made in a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from small import small_recipe
from tiny import write_lines

from synmt.data.vocabulary import EOS
from synmt.data.vocabulary_training import train_vocabulary
from synmt.decode.translator import Translator
from synmt.model.build import build_for
from synmt.model.weights import save_weights
from synmt.parsing.parser import StanzaParser
from synmt.recipe.data import VocabularyRecipe
from synmt.run_folder import Run
from synmt.syntax.conllu import format_conllu
from synmt.syntax.parse import flat_parse

TEXT = [
    "The monkey eats a banana.",
    "A dog sees the two cats on the table.",
    "The girls next to the boy order the books.",
    "Der Affe isst eine Banane.",
    "Ein Hund sieht die zwei Katzen auf dem Tisch.",
    "Die Mädchen neben dem Jungen bestellen die Bücher.",
]
PASCAL = {"name": "pascal", "layers": [1], "heads": 2}
SIZE = {
    "encoder_layers": 2,
    "decoder_layers": 2,
    "model_dim": 32,
    "feedforward_dim": 32,
    "heads": 4,
}
LSTM = {
    "architecture": "lstm",
    "encoder_layers": 2,
    "decoder_layers": 2,
    "model_dim": 32,
    "initial_range": 0.5,
}


def load_run(folder: Path, *variants: dict[str, Any], **options: Any) -> Translator:
    """Write a run folder as `make_run` does, and load the model."""
    return Translator.load(make_run(folder, *variants, **options))


def flat_conllu(lines: Iterable[str]) -> str:
    """Write flat trees of lines as CoNLL-U."""
    return "".join(
        format_conllu(flat_parse(line), line, number) for number, line in enumerate(lines, 1)
    )


def make_run(
    folder: Path,
    *variants: dict[str, Any],
    parser: bool = True,
    max_pieces: int = 512,
    model: Mapping[str, Any] = MappingProxyType(SIZE),
    **sections: Any,
) -> Run:
    """Write a run folder; with a parser, the compact English one is recorded; `sections` are those
    of its recipe."""
    own = {
        "filters": {"max_pieces": max_pieces},
        "vocabulary": {"size": 340},
        "model": dict(model),
        "syntax": {"variants": list(variants)},
        "decoding": {"batch_size": 4, "max_length_ratio": 1.0, "max_length_extra": 3},
    }
    recipe = small_recipe(name=folder.name, **own | sections)
    vocabulary = train_vocabulary(TEXT, VocabularyRecipe(size=340))
    run = Run(folder)
    folder.mkdir(parents=True)
    run.write_recipe(recipe)
    for side in ("source", "target"):
        vocabulary.save(folder, side)
    torch.manual_seed(11)
    made = build_for(recipe, vocabulary, vocabulary)
    with torch.no_grad():
        made.output_weight.mul_(4)
        made.output_weight[EOS] *= 3
    save_weights(made, run.weights)
    identity = StanzaParser("en").identity if parser else None
    run.write_info(
        name=folder.name,
        status="finished",
        finished_at="2026-01-01T00:00:00+00:00",
        steps=1,
        parser=identity,
    )
    return run


def write_tests(
    run: Run,
    source: Sequence[str],
    reference: Sequence[str],
    hypothesis: Sequence[str] = (),
    test: str = "test",
) -> Run:
    """Write a test set and its translations into a run, by default the references; gives the
    run."""
    for name, lines in (
        ("source", source),
        ("reference", reference),
        ("hypothesis", hypothesis or reference),
    ):
        write_lines(run.test_folder(test) / f"{name}.txt", lines)
    return run
