"""The model card of a run, its README.md: what it is, what it was made from, what it scores, how to
use and cite it. Its head is that of Hugging Face's hub."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from synmt import __version__
from synmt.corpora.known import KNOWN_CORPORA
from synmt.exchange.hub import HUB
from synmt.files.writing import write_content
from synmt.model.build import variant_class
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import dump_yaml

Score = tuple[str, str, float, str]
"""Test set, metric, value and signature."""

_COMPACT = "which is included in synmt, under CC BY-SA 4.0"


def write_card(
    path: Path,
    recipe: Recipe,
    pairs: int | None,
    scores: Iterable[Score],
    parser: Mapping[str, Any] | None,
    code: Path | None,
) -> None:
    """Write the card of a run.

    pairs: sentence pairs of the training text, if they are known.
    parser: identity of the parser of the sources, if the model reads or learned from trees.
    code: where the run keeps the source of variants outside synmt.
    """
    scores = list(scores)
    head = {
        "language": [recipe.source, recipe.target],
        "library_name": "synmt",
        "pipeline_tag": "translation",
        "tags": ["translation", *(variant.name for variant in recipe.syntax.variants)],
        "metrics": list(dict.fromkeys(metric for _, metric, _, _ in scores)),
    }
    if recipe.model.init is not None:
        # of a folder, the name only
        name = recipe.model.init.as_posix()
        is_of_hub = name.startswith(HUB)
        head["base_model"] = name.removeprefix(HUB) if is_of_hub else recipe.model.init.name
    known = KNOWN_CORPORA.get(recipe.corpus.name or "")
    licence = (known and known.licence) or "not known to synmt"
    pairs_of_text = f", {pairs:,} sentence pairs" if pairs is not None else ""
    model = recipe.model
    kind = "an LSTM" if model.architecture == "lstm" else "a Transformer"
    layers = f"{model.encoder_layers}+{model.decoder_layers}"
    blocks = [
        f"---\n{dump_yaml(head)}---\n\n# {recipe.name}",
        f"Translates from {recipe.source} to {recipe.target}: {kind} with {layers} layers of width "
        f"{model.model_dim}, trained with synmt {__version__} by the recipe in recipe.yaml.",
        _systems(recipe, code),
        f"**Training text**: {_text(recipe)}{pairs_of_text}. Licence of the text: {licence}.",
        _trees(recipe, parser),
        _table(scores),
        "## Use\n\n    pip install synmt\n    synmt translate --run FOLDER < text > translations",
        "## Cite\n\nThe papers that are named above, and synmt: CITATION.cff of its repository.",
    ]
    write_content(path, "\n\n".join(filter(None, blocks)) + "\n")


def _systems(recipe: Recipe, code: Path | None) -> str:
    """Say what each variant is, with its paper: the first sentence of its file."""
    about = {
        variant.name: _first_sentence(variant_class(variant.name, code=code).__module__)
        for variant in recipe.syntax.variants
    }
    return "\n".join(f"- `{name}`: {sentence}" for name, sentence in about.items())


def _first_sentence(module: str) -> str:
    text = (sys.modules[module].__doc__ or "").split("\n\n")[0]
    return " ".join(text.split())


def _text(recipe: Recipe) -> str:
    corpus = recipe.corpus
    if corpus.name or corpus.folder:
        return f"`{corpus.name or Path(str(corpus.folder)).name}`"
    return ", ".join(f"`{item.id or Path(str(item.source)).name}`" for item in corpus.train)


def _trees(recipe: Recipe, parser: Mapping[str, Any] | None) -> str:
    if not parser:
        return ""
    model, stanza = parser.get("model"), parser.get("stanza", "")
    if recipe.parser.control != "none":
        return f"**Trees**: `{recipe.parser.control}`, not those of a parser."
    origin = _COMPACT if model == "compact" else "whose licence is that of its treebank"
    return f"**Trees**: Stanza {stanza}, model `{model}`, {origin}."


def _table(scores: list[Score]) -> str:
    if not scores:
        return ""
    lines = ["| test set | metric | score | signature |", "| --- | --- | --: | --- |"]
    for test, metric, value, signature in scores:
        escaped = signature.replace("|", "\\|")
        lines.append(f"| {test} | {metric} | {value:.2f} | `{escaped}` |")
    return "\n".join(lines)
