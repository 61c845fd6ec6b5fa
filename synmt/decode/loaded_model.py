"""A trained model, loaded once with everything that translating needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from synmt.data.batch import collate
from synmt.data.task_corpus import TRANSLATION
from synmt.data.vocabulary import Vocabulary
from synmt.decode.inputs import Source
from synmt.decode.next_piece import Member
from synmt.errors import UsageError, naming
from synmt.files.reading import fingerprint
from synmt.files.schemas import RunParser
from synmt.model.attention import Memory
from synmt.model.build import build_for
from synmt.model.device import InferencePrecision, choose_device, keep_freed_memory
from synmt.model.seq2seq import Predictor, Seq2Seq
from synmt.model.weights import WithoutInitialValues, load_tensors, load_weights
from synmt.parsing.models import ADDED
from synmt.parsing.parser import NOT_IN_TREES
from synmt.recipe.data import parser_model
from synmt.recipe.schema import Recipe
from synmt.run_folder import CANDIDATES, Run
from synmt.syntax.parse import SCENES
from synmt.syntax.reading import Reading, reading_of
from synmt.tokenization.word_tokenizer import Tokenizers, load_tokenizers

READ = (
    "run.json",
    "recipe.yaml",
    "*.model",
    "*.words",
    "*.truecase",
    "features.json",
    CANDIDATES,
    "code/**/*.*",
)
"""The files of a run folder that `load_model` reads in addition to its weights."""


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
    candidates: the target pieces that each source piece may become (`synmt/data/candidates.py`).
    """

    model: Seq2Seq
    recipe: Recipe
    source: Vocabulary
    target: Vocabulary
    device: torch.device
    reading: Reading
    parser: RunParser | None
    decoder: Predictor | None
    tokenizers: Tokenizers
    candidates: Tensor

    @property
    def task(self) -> str:
        """The tag that the model needs before and after a source; empty if it was trained
        without tags."""
        return TRANSLATION if self.recipe.tasks.parsing != "none" else ""

    @property
    def linearises(self) -> bool:
        """Whether the model reads linearised trees in place of sources
        (`tasks.mixed_only`)."""
        return self.recipe.tasks.mixed_only

    @property
    def reads_trees(self) -> bool:
        """Whether the model needs the tree of a source to translate it."""
        return bool(self.reading.signals) or self.linearises

    @property
    def features(self) -> list[str]:
        """The features of words that the trees have to give."""
        return [*self.reading.of_parser, *[SCENES] * self.reading.scenes]

    def may_become(self, count: int) -> Tensor | None:
        """Return this many of the `candidates`, None if 0; raises UsageError if there are fewer."""
        known = self.candidates.size(1) - 1
        if count > known:
            raise UsageError(
                f"the run's shortlist has {known} pieces for each of the source, not {count}",
                do="Give its `synmt train` command again, with another `decoding.shortlist`",
            )
        return self.candidates[:, : 1 + count] if count else None

    @cached_property
    def parser_key(self) -> str:
        """A key that is equal for parsers with equal trees."""
        identity = (self.parser or {}).items()
        return fingerprint(sorted(fact for fact in identity if fact[0] not in NOT_IN_TREES | ADDED))

    def member(self, sources: Sequence[Source]) -> Member:
        """Let the model read sources, for a search."""
        batch = collate([source.example for source in sources], self.reading).to(self.device)
        return Member(self.model, batch.source, batch.source_signals, self.decoder)

    @torch.inference_mode()
    def encode(self, sources: Sequence[Source]) -> Memory:
        """Encode sources."""
        member = self.member(sources)
        return self.model.remember(member.source, member.signals)[0]


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
    candidates, path = torch.empty(0, 1), run.folder / CANDIDATES
    if path.exists():
        candidates = load_tensors(path)["candidates"].long().to(own_device)
    return LoadedModel(
        model,
        recipe,
        source,
        target,
        own_device,
        reading,
        identity,
        decoder,
        tokenizers,
        candidates,
    )


def check_ensemble(models: Sequence[LoadedModel], folders: Sequence[str]) -> None:
    """Refuse models that cannot form an ensemble, since they do not segment both sides into the
    same pieces.

    folders: of their runs, for the message.
    """
    for model, folder in zip(models, folders, strict=True):
        if _shared(model) != _shared(models[0]):
            raise UsageError(
                "its vocabularies, tokenization, task or linearised trees differ from those of "
                f"{folders[0]}",
                where=folder,
                do="The runs of an ensemble must be prepared from one corpus with the same "
                "`vocabulary`, `text` and `tasks`",
            )


def _shared(model: LoadedModel) -> list[Any]:
    """List what the models of an ensemble must have in common."""
    vocabularies = model.source.to_bytes(), model.target.to_bytes()
    tokenizers = [tokenizer.identity for tokenizer in model.tokenizers.values()]
    trees = model.linearises and (model.parser, model.reading.control)
    return [vocabularies, tokenizers, model.task, trees]
