"""The options of a variant: keyword arguments of its class, whose types say which values a recipe
may give them."""

from __future__ import annotations

import inspect
import json
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from synmt.errors import UsageError, all_in_one, but_is, did_you_mean, plain_message
from synmt.model.variant import Variant
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
    options, hints = option_defaults(kind), get_type_hints(kind.__init__, include_extras=True)
    known = [*sorted(options), *sorted(VariantRecipe.model_fields)]
    faults = {}
    for name, value in recipe.options.items():
        if name not in options:
            hint = did_you_mean(name, known)
            faults[name] = f"{recipe.name} has no such option. Options: {', '.join(known)}. {hint}"
            continue
        try:
            options[name] = _convert(hints.get(name, Any), value)
        except ValidationError as error:
            # a union reports one message for each of its members
            messages = dict.fromkeys(map(plain_message, error.errors()))
            faults[name] = ", or ".join(messages) + but_is(value)
    for name, value in options.items():
        if value is REQUIRED and name not in faults:
            faults[name] = f"{recipe.name} needs this option, which has no default"
    if faults:
        raise all_in_one([UsageError(what, where=f"{where}.{key}") for key, what in faults.items()])
    return options


def _convert(hint: Any, value: Any) -> Any:
    # strict JSON, as for the recipe's own keys: a list becomes a tuple, but "3" does not become a
    # number
    adapter = TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))
    return adapter.validate_json(json.dumps(value))
