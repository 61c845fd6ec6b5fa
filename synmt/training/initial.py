"""What a run takes from another one (`model.init`), and what it does not train (`model.freeze`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from synmt.arrays import SIDES, Side
from synmt.data.tasks import task_tags
from synmt.data.vocabulary import Vocabularies, Vocabulary
from synmt.errors import SynmtError, UsageError, listed
from synmt.files.checksums import verify, verify_file
from synmt.model.build import build, build_for
from synmt.model.seq2seq import Seq2Seq
from synmt.model.weights import load_weights, named_weights, weights_in
from synmt.recipe.data import VocabularyRecipe
from synmt.recipe.load import check_recipe, recipe_values
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run
from synmt.tokenization.casing import Truecaser
from synmt.tokenization.word_tokenizer import load_truecasers

_logger = logging.getLogger(__name__)

_EMBEDDINGS = ("source_embedding.table.weight", "target_embedding.table.weight", "output.weight")
_OF_TRAINING = {"dropout"}
"""Keys of `vocabulary` that do not change which pieces there are."""
_OF_WORDS = ("text", "target_text")
"""Sections of a recipe that say how a text is tokenized."""
_SHOWN = 6
"""Names in one message."""


@dataclass(frozen=True)
class Shared:
    """How the weights of two models belong together.

    pairs: by name, the weight of the new model and that of the other one.
    new: names of weights that only the new model has.
    unused: names of weights that only the other one has.
    """

    pairs: dict[str, tuple[nn.Parameter, nn.Parameter]]
    new: list[str]
    unused: list[str]


Adopted = tuple[Recipe, Vocabularies | None, dict[Side, Truecaser]]
"""A recipe, and the vocabularies and truecase models that it takes from another run."""


def adopt_vocabulary(recipe: Recipe, own: Run | None = None, *, overwrite: bool = False) -> Adopted:
    """Give a recipe with `model.init` the vocabulary of that run, unless the embeddings are
    excluded.

    own: the folder of the new run. Once it has a checkpoint, it does not need the other run any
        more.
    overwrite: whether it starts again.
    """
    init = recipe.model.init
    if init is None:
        return recipe, None, {}
    other = Run(init.expanduser())
    if own is not None and own.folder.resolve() == other.folder.resolve():
        raise UsageError(
            "a run cannot start from its own weights",
            where=f"model.init, {init}",
            do="Choose another name=…",
        )
    origin = own if own is not None and not overwrite and _has_weights(own, init) else other
    before = _recipe_of(origin)
    if not _takes_embeddings(recipe):
        return recipe, None, {}
    vocabularies: Vocabularies = {side: Vocabulary.load(origin.folder, side) for side in SIDES}
    _check_tags(recipe, before, vocabularies, other)
    return (
        _with_vocabulary(recipe, before, other),
        vocabularies,
        load_truecasers(recipe, origin.folder),
    )


def _has_weights(own: Run, init: Path) -> bool:
    return (
        own.exists()
        and bool(own.checkpoints() or own.weights.exists())
        and own.recipe().model.init == init
    )


def _recipe_of(run: Run) -> Recipe:
    try:
        run.info()
        verify(run.folder)
        return run.recipe()
    except SynmtError as error:
        near = Path("runs") / run.folder
        do = f"Did you mean '{near}'?" if not run.exists() and Run(near).exists() else error.do
        raise UsageError(
            error.what, where=f"model.init, {error.where}", allowed=error.allowed, do=do
        ) from error


def _takes_embeddings(recipe: Recipe) -> bool:
    """Tell whether the embeddings come from the other run, all of them; raises UsageError for
    some."""
    with torch.device("meta"):
        # only names are needed, so any number of pieces will do
        model = build(recipe.model, recipe.syntax, source_pieces=8, target_pieces=8)
    without = weights_in(model, recipe.model.init_except, "model.init_except")
    left_out = [name for name in _EMBEDDINGS if name in without]
    if left_out and len(left_out) < len(_EMBEDDINGS):
        raise UsageError(
            f"{', '.join(left_out)} would be new, but the other embeddings would come from the "
            "run, with its "
            "vocabulary. Either all embeddings come from the run, or none",
            where="model.init_except",
            do="List all of them (`embeddings`) or none",
        )
    return not left_out


def _with_vocabulary(recipe: Recipe, before: Recipe, other: Run) -> Recipe:
    """Describe the vocabulary that is taken; raises UsageError if the recipe asks for another
    one."""
    given, taken = (one.vocabulary.model_dump(exclude=_OF_TRAINING) for one in (recipe, before))
    values, there = recipe_values(recipe), recipe_values(before)
    differences = []
    if given != VocabularyRecipe().model_dump(exclude=_OF_TRAINING):
        other_keys = [key for key in given if given[key] != taken[key]]
        differences = [
            f"vocabulary.{key} is {given[key]!r} here and {taken[key]!r} there"
            for key in other_keys
        ]
    # another tokenization makes other pieces
    differences += [f"{key} differs" for key in _OF_WORDS if values.get(key) != there.get(key)]
    if differences:
        raise UsageError(
            "the recipe's vocabulary differs from that of the run whose weights it takes: "
            f"{', '.join(differences)}",
            where=f"model.init, {other.folder}",
            do="Leave out `vocabulary`, or learn a new one with `model.init_except: [embeddings]`",
        )
    kept = recipe.vocabulary.model_dump(mode="json", include=_OF_TRAINING)
    values["vocabulary"] = {**there["vocabulary"], **kept}
    return check_recipe(values, where=f"with the vocabulary of {other.folder}")


def _check_tags(recipe: Recipe, before: Recipe, vocabularies: Vocabularies, other: Run) -> None:
    tags = dict.fromkeys(
        (*task_tags(recipe), *(item.tag for item in recipe.corpus.train if item.tag))
    )
    missing = [tag for tag in tags if _lacks(vocabularies["source"], tag)]
    missing += ["for brackets"] * (recipe.tasks.mixed not in ("none", before.tasks.mixed))
    if missing:
        raise UsageError(
            f"the vocabulary of {other.folder} has no piece {', '.join(missing)}, which this "
            "recipe needs",
            where="model.init",
            do="Start from a run with the same tags and `tasks`, or set `model.init_except: "
            "[embeddings]`",
        )


def _lacks(vocabulary: Vocabulary, tag: str) -> bool:
    try:
        vocabulary.tag_number(tag)
    except SynmtError:
        return True
    return False


def check_parts(recipe: Recipe, vocabularies: Vocabularies | None, *, continued: bool) -> None:
    """Check before any long work that `init` and `freeze` fit the model; the models are built
    without memory.

    continued: whether the weights are those of a checkpoint.
    """
    settings = recipe.model
    if settings.init is None and not settings.freeze:
        return
    # new embeddings are compared with nothing, so any number of pieces will do
    source, target = (len(vocabularies[side]) if vocabularies else 8 for side in SIDES)
    origin = Run(settings.init.expanduser()) if settings.init is not None else None
    with torch.device("meta"):
        model = build(
            settings,
            recipe.syntax,
            source_pieces=source,
            target_pieces=target,
            features=origin.features() if origin else {},
        )
        freeze(model, recipe)
        if origin and not continued:
            _shared(model, _model_of(origin), recipe)


def freeze(model: Seq2Seq, recipe: Recipe) -> None:
    """Exclude the parts of `model.freeze` from training."""
    for weight in weights_in(model, recipe.model.freeze, "model.freeze").values():
        weight.requires_grad_(False)
    if not any(weight.requires_grad for weight in model.parameters()):
        raise UsageError(
            "every part of the model is frozen, so nothing is trained", where="model.freeze"
        )


def take_weights(model: Seq2Seq, recipe: Recipe) -> None:
    """Copy the weights of `model.init` into a new model."""
    assert recipe.model.init is not None
    run = Run(recipe.model.init.expanduser())
    other = _model_of(run)
    verify_file(run.weights_of("final"), large=True)
    load_weights(run.weights_of("final"), other)
    shared = _shared(model, other, recipe)
    with torch.no_grad():
        for mine, theirs in shared.pairs.values():
            mine.copy_(theirs)
    taken = sum({id(mine): mine.numel() for mine, _ in shared.pairs.values()}.values())
    total = sum(weight.numel() for weight in model.parameters())
    notes = [("new", shared.new), (f"only in {run.folder}", shared.unused)]
    rest = "".join(f"; {what}: {listed(names, _SHOWN)}" for what, names in notes if names)
    _logger.info(
        "model.init: %s of %s weights come from %s%s", f"{taken:,}", f"{total:,}", run.folder, rest
    )


def _model_of(run: Run) -> Seq2Seq:
    """Build the model of a run, without its weights; raises SynmtError if the run has not
    finished."""
    run.weights_of("final")
    source, target = (Vocabulary.load(run.folder, side) for side in SIDES)
    return build_for(run.recipe(), source, target, run.features(), run.folder / "code")


def _shared(model: Seq2Seq, other: Seq2Seq, recipe: Recipe) -> Shared:
    """Pair the weights of two models by their names; raises UsageError where shapes or sharing
    differ."""
    mine, theirs = named_weights(model), named_weights(other)
    without = weights_in(model, recipe.model.init_except, "model.init_except")
    left_out = {id(weight) for weight in without.values()}
    usable = {name: weight for name, weight in mine.items() if id(weight) not in left_out}
    pairs = {name: (weight, theirs[name]) for name, weight in usable.items() if name in theirs}
    where = f"model.init, {recipe.model.init}"
    if not pairs:
        raise UsageError("no weight of this run fits the model", where=where)
    _check_shapes(pairs, where)
    _check_sharing(pairs, where)
    return Shared(
        pairs,
        [name for name in mine if name not in pairs],
        [name for name in theirs if name not in mine],
    )


def _check_shapes(pairs: dict[str, tuple[nn.Parameter, nn.Parameter]], where: str) -> None:
    shapes = {
        name: (tuple(a.shape), tuple(b.shape))
        for name, (a, b) in pairs.items()
        if a.shape != b.shape
    }
    if shapes:
        differing = (f"{name} {theirs}, not {mine}" for name, (mine, theirs) in shapes.items())
        raise UsageError(
            f"these weights have different shapes in this run: {listed(differing, _SHOWN)}",
            where=where,
            do="Use the sizes of that run, or leave these parts out with `model.init_except: […]`",
        )


def _check_sharing(pairs: dict[str, tuple[nn.Parameter, nn.Parameter]], where: str) -> None:
    first: dict[int, tuple[str, nn.Parameter]] = {}
    for name, (mine, theirs) in pairs.items():
        before, weight = first.setdefault(id(mine), (name, theirs))
        if weight is not theirs:
            raise UsageError(
                f"{before} and {name} are one matrix in this model, and two in this run",
                where=where,
                do="Set `model.embeddings` as in that run",
            )
