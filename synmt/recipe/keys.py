"""The keys of a recipe as a list: path, default, values, meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from synmt.recipe.schema import Recipe

_TYPES = {
    "path": "path",
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}
_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}

_Schema = Mapping[str, Any]


@dataclass(frozen=True)
class RecipeKey:
    """One key of a recipe.

    path: as in an override, `training.seed`; `[]` is an entry of a list, `NAME` a name of your
        choice.
    default: as in YAML; empty if there is none.
    values: which ones are allowed; empty for a section.
    """

    path: str
    default: str
    values: str
    meaning: str

    def text(self) -> str:
        """Write the key in two lines."""
        default = f"={self.default}" if self.default else ""
        values = f"   {self.values}" if self.values else ""
        return f"{self.path}{default}{values}\n    {self.meaning}"

    def matches(self, words: Iterable[str]) -> bool:
        """Check whether every word is part of the path or the meaning; case does not matter."""
        text = f"{self.path} {self.meaning}".lower()
        return all(word.lower() in text for word in words)


def list_keys(words: Iterable[str] = ()) -> list[RecipeKey]:
    """List the keys that match all words, in the order of the recipe."""
    words, schema = list(words), Recipe.model_json_schema()
    return [key for key in _keys(schema, schema["$defs"], "") if key.matches(words)]


def _keys(schema: _Schema, definitions: _Schema, prefix: str) -> Iterator[RecipeKey]:
    """Yield the keys of one section, and of those in it."""
    for name, key in schema["properties"].items():
        path, meaning = prefix + name, " ".join(key.get("description", "").split())
        section, ending = _section(key)
        if section is None:
            yield RecipeKey(path, yaml_text(key.get("default")), allowed_values(key), meaning)
        else:
            yield RecipeKey(path + ending, "", "", meaning)
            yield from _keys(definitions[section], definitions, f"{path}{ending}.")


def _section(key: _Schema) -> tuple[str | None, str]:
    """Name the definition of a key's own keys, if it has some, and what comes between."""
    parts = [(part, "") for part in key.get("anyOf", [key])]
    parts += [(key.get("items", {}), "[]"), (key.get("additionalProperties", {}), ".NAME")]
    for part, ending in parts:
        if "$ref" in part:
            return part["$ref"].rpartition("/")[2], ending
    return None, ""


def yaml_text(default: Any) -> str:
    """Write a default as in YAML; empty for None."""
    if default is None:
        return ""
    return default if isinstance(default, str) else json.dumps(default, default=dict)


def allowed_values(key: _Schema) -> str:
    """Write which values a key may have, from its JSON schema: `bpe or unigram or word`,
    `number ≥ 0, < 1`."""
    if "anyOf" in key:
        return " or ".join(
            allowed_values(part) for part in key["anyOf"] if part != {"type": "null"}
        )
    if "const" in key or "enum" in key:
        return " or ".join(map(str, key.get("enum", [key.get("const")])))
    if key.get("type") == "array":
        entries = key.get("prefixItems") or [key["items"]]
        return f"list: {', '.join(map(allowed_values, entries))}"
    if key.get("type") == "object":
        return f"name: {allowed_values(key['additionalProperties'])}"
    kind = _TYPES.get(key.get("format") or key.get("type", ""), "")
    limits = [f"{sign} {key[name]}" for name, sign in _LIMITS.items() if name in key]
    return " ".join([kind, ", ".join(limits)]).strip()
