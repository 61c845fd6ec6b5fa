"""The weights of a model: in a file, the mean of several such files, and their names.

A recipe names parts of a model as the code does, but numbers count from 1, and a variant has its
own name instead of its number: `encoder.1.self_attention.variants.pascal`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from synmt.data.batch import Tensors
from synmt.errors import UsageError, broken_run, did_you_mean
from synmt.files.checksums import verify_file
from synmt.files.writing import reporting_os_errors, write_content
from synmt.model.variant import Variant


def save_weights(model: nn.Module, path: Path) -> None:
    """Write every parameter once, even if several modules share it."""
    save_tensors(dict(model.named_parameters()), path)


def load_weights(path: Path, model: nn.Module) -> None:
    """Read every parameter; raises SynmtError if the file does not fit the model."""
    parameters = dict(model.named_parameters())
    tensors = load_checked(path, parameters)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[name])


def load_checked(path: Path, expected: Mapping[str, Tensor]) -> Tensors:
    """Read tensors; raises SynmtError unless they have the names, shapes and types of `expected`,
    and are finite."""
    tensors = load_tensors(path)
    for name in sorted(tensors.keys() | expected.keys()):
        tensor, like = tensors.get(name), expected.get(name)
        if (
            tensor is None
            or like is None
            or (tensor.shape, tensor.dtype) != (like.shape, like.dtype)
            or not tensor.isfinite().all()
        ):
            raise broken_run(path, f"{name} does not fit the recipe's model, or is not finite")
    return tensors


class WithoutInitialValues(TorchFunctionMode):
    """Draws no random numbers for weights while it is active: for a model whose weights are all
    read from a file."""

    _DRAW = frozenset({"uniform_", "normal_", "kaiming_uniform_", "xavier_uniform_"})

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Leave the tensor of a function that draws random numbers as it is; call all others."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in self._DRAW:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def average_weights(paths: Sequence[Path], target: Path) -> None:
    """Write the mean of several files of weights."""
    total: Tensors = {}
    first = load_tensors(paths[0])
    for path in paths:
        for name, tensor in load_checked(path, first).items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    mean = {name: (tensor / len(paths)).float() for name, tensor in total.items()}
    write_content(target, save(mean))


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors, from any device."""
    with reporting_os_errors(path):
        path.write_bytes(
            save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        )


def load_tensors(path: Path) -> Tensors:
    """Read the tensors of a file onto the CPU; raises SynmtError if it is missing or damaged."""
    verify_file(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise broken_run(path, f"cannot be read ({error})") from None


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
    # from the outermost parts of a weight to itself
    outer = (accumulate(name.split("."), "{}.{}".format) for name in named)
    all_parts = dict.fromkeys(chain.from_iterable(outer))
    chosen = {}
    for part in parts:
        wanted = tuple(f"{name}." for name in _GROUPS.get(part, (part,)))
        inside = {name: weight for name, weight in named.items() if f"{name}.".startswith(wanted)}
        if not inside:
            outermost = sorted(name for name in all_parts if "." not in name)
            raise UsageError(
                f"the model has no part '{part}'",
                where=where,
                allowed=f"Parts: {', '.join([*outermost, *_GROUPS])}, and those in them, such as "
                "encoder.1",
                do=did_you_mean(part, [*all_parts, *_GROUPS]),
            )
        chosen |= inside
    return chosen
