"""The options of a variant: keyword arguments of its class, whose types say which values a recipe
may give them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean, plain_message
from synmt.model.variant import Variant
from synmt.recipe.model import WIDEST
from synmt.recipe.schema import VariantRecipe

REQUIRED: Any = inspect.Parameter.empty
"""In place of the default of an option that every recipe has to set."""


def option_defaults(kind: type[Variant]) -> dict[str, Any]:
    """List the options of a variant, with their defaults; `REQUIRED` for one without."""
    parameters = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_options(kind: type[Variant], recipe: VariantRecipe, where: str) -> dict[str, Any]:
    """Return every option of a variant, with the recipe's value or its default; raise one
    UsageError for all faults.

    where: the key of the variant in the recipe.
    """
    defaults = option_defaults(kind)
    hints = get_type_hints(kind.__init__, include_extras=True)
    options = dict(defaults)
    errors: list[SynmtError] = [
        UsageError(
            f"{where} lacks '{name}', which has no default", do=f"Add `{name}: …` to {recipe.name}"
        )
        for name, default in defaults.items()
        if default is REQUIRED and name not in recipe.options
    ]
    for name, value in recipe.options.items():
        if name not in defaults:
            own, common = sorted(defaults), sorted(VariantRecipe.model_fields)
            errors.append(
                UsageError(
                    f"{where} has no option '{name}'",
                    allowed=f"Options of {recipe.name}: {', '.join(own)}; of every variant: "
                    f"{', '.join(common)}",
                    do=did_you_mean(name, [*own, *common]),
                )
            )
            continue
        try:
            options[name] = _convert(hints.get(name, Any), value)
            if any(number > WIDEST for number in _integers(options[name])):
                errors.append(
                    UsageError(
                        f"an option is at most {WIDEST}, not {value!r}", where=f"{where}.{name}"
                    )
                )
        except ValidationError as error:
            # a union reports one message for each of its members
            messages = dict.fromkeys(map(plain_message, error.errors()))
            errors.append(
                UsageError(f"{', or '.join(messages)}, not {value!r}", where=f"{where}.{name}")
            )
    if errors:
        raise all_in_one(errors)
    return options


def _convert(hint: Any, value: Any) -> Any:
    # strict JSON, as for the recipe's own keys: a list becomes a tuple, but "3" does not become a
    # number
    adapter = TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))
    return adapter.validate_json(json.dumps(value))


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, (tuple, Mapping)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _integers(part)
