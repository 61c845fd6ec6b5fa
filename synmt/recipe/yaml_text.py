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
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the file as UTF-8 ({error})", where=path) from None
    return _parse_yaml(text, str(path))


def parse_yaml_value(text: str) -> Any:
    """Parse the value of a `key=value` override: a number, true, a word, [a, list], {a: map}."""
    return _parse_yaml(text, "override")


def dump_yaml(values: Any) -> str:
    """Write plain data so that `load_yaml` returns it unchanged."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


_NUMBER = re.compile(
    r"^[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$|^[-+]?\.(?:inf|Inf)$|^\.(?:nan|NaN)$"
)
_FIRST_OF_NUMBERS = list("-+.0123456789")

# libyaml is ten times as fast, and not in every build of PyYAML
_SafeLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):
    """The core schema of YAML 1.2, where only true and false are booleans; keys must be unique."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            # a recipe has no other keys than strings, so that 1 and "1" are one
            if not isinstance(key, yaml.ScalarNode) or key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a string, and unique", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


# in this order: an integer is also a number; 010 is not an octal number, as in YAML 1.1
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""]),
    ("bool", re.compile(r"^(?:true|false)$"), ["t", "f"]),
    ("int", re.compile(r"^[-+]?\d[\d_]*$"), _FIRST_OF_NUMBERS),
    ("float", _NUMBER, _FIRST_OF_NUMBERS),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value.replace("_", "")))


class _Dumper(yaml.SafeDumper):
    """Puts quotes around strings that `_Loader` would take for numbers, such as 08 and 1e5."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, _FIRST_OF_NUMBERS)


def _parse_yaml(text: str, where: str) -> Any:
    try:
        # as in JSON: keys are text, and a change of one place leaves aliases of it alone
        return json.loads(json.dumps(yaml.load(text, Loader=_Loader), default=str))
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # PyYAML does not catch errors of its conversions, such as those of `!!int many` and
        # `!!bool many`
        mark = getattr(error, "problem_mark", None)
        line = f"{where}, line {mark.line + 1}" if mark else where
        what = getattr(error, "problem", None) or error
        raise UsageError(f"not valid YAML: {what}", where=line) from None
