"""A trained model, loaded once with everything that translating needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from synmt.arrays import SIDES, Side
from synmt.data.tasks import TRANSLATION
from synmt.data.vocabulary import Vocabulary
from synmt.errors import UsageError, naming
from synmt.files.schemas import RunParser
from synmt.model.build import build_for
from synmt.model.device import InferencePrecision, choose_device, keep_freed_memory
from synmt.model.seq2seq import Predictor, Seq2Seq
from synmt.model.weights import WithoutInitialValues, load_weights
from synmt.recipe.data import parser_model
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run
from synmt.syntax.reading import Reading, reading_of
from synmt.tokenization.word_tokenizer import RAW, WordTokenizer, load_tokenizers


@dataclass(frozen=True)
class LoadedModel:
    """A model in evaluation mode, and what belongs to it.

    source, target: its vocabularies.
    device: of its weights.
    reading: what it reads of the trees of sources.
    parser: identity of the parser that made its training trees; None if the run does not record
        one.
    decoder: predicts pieces in a search, perhaps with a copy of the weights; None if the model
        does.
    tokenizers: how raw text becomes the words that it reads and writes, and back.
    """

    model: Seq2Seq
    recipe: Recipe
    source: Vocabulary
    target: Vocabulary
    device: torch.device
    reading: Reading
    parser: RunParser | None = None
    decoder: Predictor | None = None
    tokenizers: Mapping[Side, WordTokenizer] = field(
        default_factory=lambda: {"source": RAW, "target": RAW}
    )

    @property
    def task(self) -> str:
        """Return the tag that the model needs before and after a source; empty if it was trained
        without tags."""
        return TRANSLATION if self.recipe.tasks.parsing != "none" else ""

    @cached_property
    def linearises(self) -> bool:
        """Tell whether the model reads linearised trees in place of sources
        (`tasks.mixed_only`)."""
        return self.recipe.tasks.mixed_only

    @property
    def reads_trees(self) -> bool:
        """Tell whether the model needs the tree of a source to translate it."""
        return bool(self.reading.signals) or self.linearises

    @property
    def needs_arcs(self) -> bool:
        """Tell whether the trees have to come with arc probabilities."""
        return self.reading.arcs and not self.reading.certain


def load_model(
    run: Run,
    recipe: Recipe,
    *,
    device: str,
    checkpoint: str,
    parser: str | None = None,
    precision: InferencePrecision = "float32",
) -> LoadedModel:
    """Load the model of a run with the weights `final`, `best`, `last` or `average`.

    parser: the model or folder of the parser, if it is no longer where the run recorded it.
    precision: of the linear layers; a processor that cannot multiply in it computes in float32,
        which is logged.
    """
    keep_freed_memory()
    info = run.info()
    identity = info.get("parser")
    if parser is not None:
        parser = parser_model(parser, recipe.source)
        recipe = recipe.model_copy(
            update={"parser": recipe.parser.model_copy(update={"model": parser})}
        )
    source, target = (Vocabulary.load(run.folder, side) for side in ("source", "target"))
    with WithoutInitialValues(), naming(run.folder / "recipe.yaml"):
        model = (
            build_for(recipe, source, target, run.features(), run.folder / "code")
            .to(choose_device(device))
            .eval()
        )
    load_weights(run.weights_of(checkpoint), model)
    if identity is not None and parser is not None:
        identity["model"] = parser
    reading = reading_of(model.reads("source"), recipe.parser)
    tokenizers = load_tokenizers(recipe, run.folder, info.get("text", {}))
    own_device = next(model.parameters()).device
    decoder = model.prepared(precision)
    return LoadedModel(
        model, recipe, source, target, own_device, reading, identity, decoder, tokenizers
    )


def check_ensemble(models: Sequence[LoadedModel], folders: Sequence[str]) -> None:
    """Refuse models that cannot form an ensemble, since they do not segment both sides into the
    same pieces.

    folders: of their runs, for the message.
    """
    first, *others = models
    for other, where in zip(others, folders[1:], strict=True):
        sides = [
            side
            for side in ("source", "target")
            if getattr(first, side).to_bytes() != getattr(other, side).to_bytes()
        ]
        if sides:
            raise UsageError(
                _differing(sides, folders[0]),
                where=where,
                do="The runs of an ensemble must be prepared from one corpus with the same "
                "`vocabulary` section",
            )
        if different := [
            side
            for side in SIDES
            if first.tokenizers[side].identity != other.tokenizers[side].identity
        ]:
            raise UsageError(
                f"its {' and '.join(different)} is not tokenized as that of {folders[0]}",
                where=where,
                do="The runs of an ensemble must have the same `text`, `target_text` and "
                "training text",
            )
        if first.task != other.task:
            raise UsageError(
                f"only one of this run and {folders[0]} was trained with task tags",
                where=where,
                do="The runs of an ensemble must have the same `tasks.parsing`",
            )
        if first.linearises != other.linearises or (
            first.linearises and _trees_of(first) != _trees_of(other)
        ):
            raise UsageError(
                f"it reads other linearised trees than {folders[0]}, or only one of the two reads "
                "such trees",
                where=where,
                do="The runs of an ensemble must have the same `tasks.mixed_only` and the "
                "same parser",
            )


def _trees_of(model: LoadedModel) -> tuple[Any, ...]:
    return model.parser, model.reading.control


def _differing(sides: Sequence[str], folder: str) -> str:
    if len(sides) == 1:
        return f"its {sides[0]} vocabulary differs from that of {folder}"
    return f"its {' and '.join(sides)} vocabularies differ from those of {folder}"
