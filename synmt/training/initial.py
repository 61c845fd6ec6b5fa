"""What a run takes from another one (`model.init`), and what it does not train (`model.freeze`)."""

from __future__ import annotations

import logging

import torch
from torch import nn

from synmt.arrays import SIDES, Side
from synmt.data.task_corpus import task_tags
from synmt.data.vocabulary import Vocabularies, Vocabulary
from synmt.errors import SynmtError, UsageError, adding_advice, listed
from synmt.exchange.hub import NotDownloaded, is_planning
from synmt.files.checksums import verify, verify_file
from synmt.model.build import build, build_for
from synmt.model.seq2seq import Seq2Seq
from synmt.model.weights import load_weights, named_weights, weights_in
from synmt.recipe.data import VocabularyRecipe
from synmt.recipe.load import check_recipe, recipe_values
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run, named_run
from synmt.tokenization.word_tokenizer import Truecaser, load_truecasers

_logger = logging.getLogger(__name__)

_EMBEDDINGS = ("source_embedding.table.weight", "target_embedding.table.weight", "output.weight")

Pairs = dict[str, tuple[nn.Parameter, nn.Parameter]]
"""By name, a weight of the new model and the one of the other run that it is taken from."""

Adopted = tuple[Recipe, Vocabularies | None, dict[Side, Truecaser]]
"""A recipe, and the vocabularies and truecase models that it takes from another run."""


def adopt_vocabulary(recipe: Recipe, run: Run | None = None, *, overwrite: bool = False) -> Adopted:
    """Put into a recipe with `model.init` the vocabulary of that run, unless the embeddings are
    excluded.

    run: the new run. Once it has a checkpoint, it does not need the other run any
        more.
    overwrite: whether it starts again.
    """
    init = recipe.model.init
    if init is None:
        return recipe, None, {}
    if run is not None and run.folder.resolve() == init.expanduser().resolve():
        raise UsageError(
            "a run cannot start from its own weights",
            where=f"model.init, {init}",
            do="Choose another name=…",
        )
    origin = None
    if (
        run is not None
        and run.exists()
        and not overwrite
        and (run.weights.exists() or run.checkpoints())
        and run.recipe().model.init == init
    ):
        origin = run
    try:
        origin = origin or named_run(init)
    except NotDownloaded:
        if not is_planning():
            raise
        return recipe, None, {}
    try:
        origin.info()
        verify(origin.folder)
        before = origin.recipe()
    except SynmtError as error:
        raise UsageError(error.what, where=f"model.init, {error.where}", do=error.do) from error
    recipe = _with_model(recipe, before)
    if not _takes_embeddings(recipe):
        return recipe, None, {}
    vocabularies: Vocabularies = {side: Vocabulary.load(origin.folder, side) for side in SIDES}
    _check_tags(recipe, before, vocabularies["source"])
    recipe = _with_vocabulary(recipe, before)
    return recipe, vocabularies, load_truecasers(recipe, origin.folder)


_OF_THE_NETWORK = (
    "architecture",
    "encoder_layers",
    "decoder_layers",
    "model_dim",
    "embedding_dim",
    "feedforward_dim",
    "heads",
    "encoder_heads",
    "norm",
    "norm_kind",
    "positions",
    "feed_forward",
    "output_bias",
    "embeddings",
)
"""Keys of `model` that weights depend on."""


def _with_model(recipe: Recipe, before: Recipe) -> Recipe:
    """Take the network of the other run, as far as the recipe does not describe it."""
    values, there = recipe_values(recipe), recipe_values(before)["model"]
    taken = set(_OF_THE_NETWORK) & there.keys() - recipe.model.model_fields_set
    if not taken:
        return recipe
    # an LSTM has no keys of a Transformer
    kept = recipe.model.model_fields_set | there.keys()
    values["model"] = {key: one for key, one in values["model"].items() if key in kept}
    values["model"] |= {key: there[key] for key in taken}
    if "encoder_heads" in taken and there.get("encoder_heads"):
        # of the first layers, if there are fewer
        values["model"]["encoder_heads"] = there["encoder_heads"][
            : values["model"]["encoder_layers"]
        ]
    return check_recipe(values, where=f"with the network of {recipe.model.init}")


def _takes_embeddings(recipe: Recipe) -> bool:
    """Check whether some embeddings come from the other run, and with them its vocabulary."""
    with torch.device("meta"):
        # only names are needed, so any number of pieces will do
        model = build(recipe.model, recipe.syntax, source_pieces=8, target_pieces=8)
    without = weights_in(model, recipe.model.init_except, "model.init_except")
    return any(name not in without for name in _EMBEDDINGS)


def _with_vocabulary(recipe: Recipe, before: Recipe) -> Recipe:
    """Describe the vocabulary that is taken; raises UsageError if the recipe asks for another
    one."""
    values, there = recipe_values(recipe), recipe_values(before)
    here, dropout = values["vocabulary"], recipe.vocabulary.dropout
    # which pieces there are does not depend on dropout
    del here["dropout"]
    differing = [f"vocabulary.{key}" for key in here if here[key] != there["vocabulary"][key]]
    if here == VocabularyRecipe().model_dump(mode="json", exclude={"dropout"}):
        # the recipe asks for none
        differing = []
    # another tokenization makes other pieces
    differing += [key for key in ("text", "target_text") if values.get(key) != there.get(key)]
    if differing:
        raise UsageError(
            f"the recipe and the run whose vocabulary it takes differ in {', '.join(differing)}",
            where=f"model.init, {recipe.model.init}",
            do="Leave out `vocabulary`, or learn a new one with `model.init_except: [embeddings]`",
        )
    values["vocabulary"] = {**there["vocabulary"], "dropout": dropout}
    return check_recipe(values, where=f"with the vocabulary of {recipe.model.init}")


def _check_tags(recipe: Recipe, before: Recipe, vocabulary: Vocabulary) -> None:
    """Raise SynmtError unless the vocabulary has the pieces of the recipe's tags and brackets."""
    with adding_advice(
        "`model.init` needs a run with the same tags and `tasks`; or set `model.init_except: "
        "[embeddings]`"
    ):
        for tag in [*task_tags(recipe), *(item.tag for item in recipe.corpus.train if item.tag)]:
            vocabulary.tag_number(tag)
        if recipe.tasks.mixed not in ("none", before.tasks.mixed):
            raise UsageError("the vocabulary has no piece for brackets", where="model.init")


def check_parts(recipe: Recipe, vocabularies: Vocabularies | None, *, continued: bool) -> None:
    """Check before any long work that `init` and `freeze` fit the model; the models are built
    without memory.

    continued: whether the weights are those of a checkpoint.
    """
    settings = recipe.model
    if settings.init is None and not settings.freeze:
        return
    if is_planning() and vocabularies is None:
        # the other run may not be there yet
        return
    # new embeddings are compared with nothing, so any number of pieces will do
    source, target = (len(vocabularies[side]) if vocabularies else 8 for side in SIDES)
    origin = named_run(settings.init) if settings.init is not None else None
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
            _pairs(model, _model_of(origin), recipe)


def freeze(model: Seq2Seq, recipe: Recipe) -> None:
    """Exclude the parts of `model.freeze` from training."""
    for weight in weights_in(model, recipe.model.freeze, "model.freeze").values():
        weight.requires_grad_(False)
    if not any(weight.requires_grad for weight in model.parameters()):
        raise UsageError(
            "every part of the model is frozen, so nothing is trained", where="model.freeze"
        )


def take_weights(model: Seq2Seq, recipe: Recipe) -> list[str]:
    """Copy the weights of `model.init` into a new model; returns their names."""
    assert recipe.model.init is not None
    run = named_run(recipe.model.init)
    other = _model_of(run)
    verify_file(run.weights_of("final"), large=True)
    load_weights(run.weights_of("final"), other)
    pairs = _pairs(model, other, recipe)
    with torch.no_grad():
        for mine, theirs in pairs.values():
            mine.copy_(theirs)
    _logger.info(
        "model.init: %d of %d parameter tensors come from %s",
        len(pairs),
        len(named_weights(model)),
        run.folder,
    )
    return list(pairs)


def _model_of(run: Run) -> Seq2Seq:
    """Build the model of a run, without its weights; raises SynmtError if the run has not
    finished."""
    run.weights_of("final")
    source, target = (Vocabulary.load(run.folder, side) for side in SIDES)
    return build_for(run.recipe(), source, target, run.features(), run.folder / "code")


def _pairs(model: Seq2Seq, other: Seq2Seq, recipe: Recipe) -> Pairs:
    """Pair the weights of two models by their names; raises UsageError where shapes or sharing
    differ."""
    theirs = named_weights(other)
    without = weights_in(model, recipe.model.init_except, "model.init_except").values()
    left_out = set(map(id, without))
    pairs = {
        name: (weight, theirs[name])
        for name, weight in named_weights(model).items()
        if name in theirs and id(weight) not in left_out
    }
    first: dict[int, nn.Parameter] = {}
    differing = [
        name
        for name, (mine, twin) in pairs.items()
        # one matrix in this model may be two in the other one
        if mine.shape != twin.shape or first.setdefault(id(mine), twin) is not twin
    ]
    if differing or not pairs:
        raise UsageError(
            "these weights have different shapes in this run, or are shared in one model only: "
            f"{listed(differing or theirs, 6)}",
            where=f"model.init, {recipe.model.init}",
            do="Use the sizes and `model.embeddings` of that run, or leave these parts out with "
            "`model.init_except: […]`",
        )
    return pairs
