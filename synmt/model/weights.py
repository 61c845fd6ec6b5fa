"""The weights of a model in a file, and the mean of several such files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from synmt.errors import SynmtError, broken_run
from synmt.files.checksums import verify_file
from synmt.files.writing import reporting_os_errors, set_usual_mode, write_atomically


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


def load_checked(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read tensors; raises SynmtError unless they have the names, shapes and types of `expected`,
    and are finite."""
    tensors = load_tensors(path)
    for name in sorted(tensors.keys() ^ expected.keys()):
        what = "is missing" if name in expected else "is not part of it"
        raise broken_run(path, f"it does not fit the recipe's model: {name} {what}")
    for name, tensor in tensors.items():
        for what, here, there in (
            ("shape", tuple(tensor.shape), tuple(expected[name].shape)),
            ("type", tensor.dtype, expected[name].dtype),
        ):
            if here != there:
                raise broken_run(path, f"{name} has the {what} {here}, but the model's is {there}")
        if not tensor.isfinite().all():
            raise broken_run(path, f"{name} has values that are not finite")
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
    total: dict[str, Tensor] = {}
    first = load_tensors(paths[0])
    for path in paths:
        for name, tensor in load_checked(path, first).items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    mean = {name: (tensor / len(paths)).float() for name, tensor in total.items()}
    with write_atomically(target, binary=True) as out:
        out.write(save(mean))


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors, from any device."""
    with reporting_os_errors(path):
        try:
            save_file(
                {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path
            )
        except SafetensorError as error:
            raise _of_the_system(error) from error
        set_usual_mode(path)


def _of_the_system(error: SafetensorError) -> OSError:
    """Find the error of the operating system, which safetensors only names in its message."""
    number = re.search(r"os error (\d+)", str(error))
    return (
        OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(0, str(error))
    )


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file onto the CPU; raises SynmtError if it is missing or damaged."""
    verify_file(path)
    try:
        return load_file(path)
    except FileNotFoundError:
        # safetensors raises this also where it may not read the file
        if path.exists():
            raise SynmtError(
                "cannot read the file", where=str(path), do="Check its permissions"
            ) from None
        raise broken_run(path, "the file is missing") from None
    except (SafetensorError, OSError) as error:
        raise broken_run(path, f"cannot be read ({error})") from None
