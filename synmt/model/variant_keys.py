"""The options of all variants as keys of a recipe, from the signatures and docstrings of their
classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from synmt.model.build import variant_class, variant_names
from synmt.model.placement import REQUIRED, option_defaults
from synmt.recipe.keys import RecipeKey, allowed_values, yaml_text


def list_options(words: Iterable[str] = ()) -> list[RecipeKey]:
    """List the variants and their options that match all words; the path of each is
    `syntax.variants[NAME].OPTION`."""
    words = list(words)
    return [key for name in variant_names() for key in variant_keys(name) if key.matches(words)]


def variant_keys(name: str) -> Iterator[RecipeKey]:
    kind, path = variant_class(name), f"syntax.variants[{name}]"
    text = inspect.getdoc(kind) or ""
    yield RecipeKey(path, "", "", text.partition("\n")[0])
    # `reach: largest distance …`, and perhaps more lines, which are indented
    documented = re.findall(r"^(\w+(?:, \w+)*): (.*(?:\n {4}.*)*)", text, flags=re.MULTILINE)
    meanings = {
        option: " ".join(meaning.split())
        for options, meaning in documented
        for option in options.split(", ")
    }
    hints = get_type_hints(kind.__init__, include_extras=True)
    for option, default in option_defaults(kind).items():
        values = allowed_values(TypeAdapter(hints.get(option, Any)).json_schema())
        meaning = meanings.get(option, "")
        meaning = meaning[:1].upper() + meaning[1:]
        if default is REQUIRED:
            default, meaning = None, f"(Has no default.) {meaning}"
        yield RecipeKey(f"{path}.{option}", yaml_text(default), values, meaning)
