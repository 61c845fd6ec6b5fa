"""The parts of a model by the names that a recipe uses: as in the code, but numbers count from 1,
and a variant has its own name instead of its number: `encoder.1.self_attention.variants.pascal`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from torch import nn

from synmt.errors import UsageError, did_you_mean
from synmt.model.variant import Variant

_GROUPS = {"embeddings": ("source_embedding", "target_embedding", "output")}
"""Names for several parts at once."""


def named_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """Name every parameter; a matrix that several modules share has several names."""
    return dict(_named(model, ""))


def _named(module: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Parameter]]:
    for name, parameter in module.named_parameters(recurse=False):
        yield prefix + name, parameter
    seen = Counter[str]()
    for name, child in module.named_children():
        if isinstance(child, Variant):
            name = type(child).__module__.rpartition(".")[2]
            seen[name] += 1
            # the second one in a layer is `pascal-2`
            name += f"-{seen[name]}" * (seen[name] > 1)
        elif name.isdigit():
            name = str(int(name) + 1)
        yield from _named(child, f"{prefix}{name}.")


def weights_in(model: nn.Module, parts: Iterable[str], where: str) -> dict[str, nn.Parameter]:
    """Find the parameters of some parts, by name; raises UsageError for a part that the model does
    not have.

    where: the key of the recipe.
    """
    named = named_weights(model)
    found = {}
    for part in parts:
        wanted = tuple(f"{name}." for name in _GROUPS.get(part, (part,)))
        inside = {name: weight for name, weight in named.items() if f"{name}.".startswith(wanted)}
        if not inside:
            raise _unknown_part(part, named, where)
        found |= inside
    return found


def _unknown_part(part: str, weights: Iterable[str], where: str) -> UsageError:
    """Make the error for an unknown part, which lists those of the innermost part that exists."""
    parts = {name[:end] for name in weights for end in _ends(name)}
    known = max((part[:end] for end in _ends(part) if part[:end] in parts), key=len, default="")
    inside = [name for name in parts if name.startswith(f"{known}." if known else "")]
    depth = known.count(".") + 1 if known else 0
    names = sorted((name for name in inside if name.count(".") == depth), key=_by_number)
    names += [] if known else list(_GROUPS)
    return UsageError(
        f"the model has no part '{part}'",
        where=where,
        allowed=f"Parts{f' of {known}' if known else ''}: {', '.join(names)}",
        do=did_you_mean(part, [*parts, *_GROUPS]),
    )


def _ends(name: str) -> list[int]:
    return [place for place, character in enumerate(name) if character == "."] + [len(name)]


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else 0, part) for part in name.split(".")]
