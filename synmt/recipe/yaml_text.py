"""Reads and writes YAML without its surprises: 7e-4 is a number, 010 is ten, `no` is a string, and
keys are unique."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from synmt.errors import UsageError


def load_yaml(path: Path) -> Any:
    """Read a YAML file; raises UsageError with the line of a syntax error."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError("file not found", where=str(path)) from None
    except IsADirectoryError:
        inside = path / "recipe.yaml"
        do = f"The recipe of this run is {inside}" if inside.is_file() else "Name a file"
        raise UsageError("a folder, not a recipe", where=str(path), do=do) from None
    except OSError as error:
        raise UsageError(f"cannot read the file ({error.strerror})", where=str(path)) from None
    except UnicodeDecodeError:
        do = "A recipe is text in UTF-8: name another file, or save this one as UTF-8"
        raise UsageError("not UTF-8", where=str(path), do=do) from None
    return _parse_yaml(text, str(path))


def parse_yaml_value(text: str, *, depth: int = 0) -> Any:
    """Parse the value of a `key=value` override: a number, true, a word, [a, list], {a: mapping}.

    depth: number of the collections that the value is in.
    """
    return _parse_yaml(text, "override", depth)


def dump_yaml(values: Any) -> str:
    """Write plain data so that `load_yaml` returns it unchanged."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


_NUMBER = re.compile(
    r"^[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$|^[-+]?\.(?:inf|Inf)$|^\.(?:nan|NaN)$"
)


_DEEPEST = 100

# libyaml is ten times as fast, and not in every build of PyYAML
_SafeLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):
    """The core schema of YAML 1.2, where only true and false are booleans; keys must be unique."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)  # type: ignore[no-untyped-call]
            if not isinstance(key, str | int | float | None):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a string", key_node.start_mark
                )
            # a recipe has no other keys than strings, so that 1 and "1" are one
            name = key if isinstance(key, str) else json.dumps(key)
            if key in seen or name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key '{name}'", key_node.start_mark
                )
            seen |= {key, name}
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""]
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), ["t", "f"])
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?\d[\d_]*$"), list("-+0123456789")
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
# not an octal number as in YAML 1.1, where 010 is 8
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value.replace("_", "")))


class _Dumper(yaml.SafeDumper):
    """Puts quotes around strings that `_Loader` would take for numbers, such as 08 and 1e5."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))


def _parse_yaml(text: str, where: str, depth: int = 0) -> Any:
    try:
        _check_depth(text, where, depth)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"{where}, line {mark.line + 1}" if mark else where
        # newer versions of libyaml count for themselves, and read ahead
        if "nesting depth" in str(error.problem):
            raise _too_deep(line) from None
        raise UsageError(f"not valid YAML: {error.problem or error.context}", where=line) from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        # PyYAML does not catch errors of its conversions, such as those of `!!int many` and
        # `!!bool many`
        raise UsageError(f"not valid YAML: {error}", where=where) from None


def _check_depth(text: str, where: str, depth: int) -> None:
    """Raise UsageError for values so deep that libyaml would overflow the stack, which ends the
    process.

    An alias counts as what it names, so that functions which call themselves can read the values.
    """
    inside: list[
        tuple[str | None, int]
    ] = []  # of each open collection, its anchor and its levels so far
    levels: dict[str | None, int] = {}
    for event in yaml.parse(text, Loader=_Loader):
        below = levels.get(event.anchor, 0) if isinstance(event, yaml.AliasEvent) else 0
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, below = inside.pop()
            levels[anchor] = below
        if inside:
            anchor, so_far = inside[-1]
            inside[-1] = anchor, max(so_far, 1 + below)
        if depth + len(inside) + below > _DEEPEST:
            raise _too_deep(f"{where}, line {event.start_mark.line + 1}")


def _too_deep(where: str) -> UsageError:
    return UsageError(
        "values are nested too deeply", where=where, allowed=f"At most {_DEEPEST} levels"
    )
