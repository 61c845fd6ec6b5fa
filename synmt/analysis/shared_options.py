"""Options that several analyses share: does one that was chosen use them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from synmt.errors import UsageError

_TREE_GROUPS = ("by_depth", "by_distance", "by_relation")

USERS = {
    "unit": ("by_length",),
    "top": ("compare", "ngrams"),
    "parses": (*_TREE_GROUPS, "attention", "words", "robustness"),
    "parser": (*_TREE_GROUPS, "trees", "gates", "attention", "compare", "words", "robustness"),
}
"""The parameters that use an option, where others of the same analysis do not."""


def check_use(values: Mapping[str, Any]) -> None:
    """Raise UsageError for an option of USERS that no chosen analysis uses; `values` are those that the user gave."""
    for name, users in USERS.items():
        if name in values and not any(user in values and _uses(user, name, values) for user in users):
            raise _unused(name, users, values)


def _uses(user: str, name: str, values: Mapping[str, Any]) -> bool:
    """Tell whether a chosen analysis uses an option, given the others."""
    if user == "words":
        from_trees = any(kind.strip() != "frequency" for kind in values["words"].split(","))
        # a file has trees of the references only
        return from_trees and (name != "parser" or "parses" not in values or values.get("side") == "target")
    if name != "parser" or user not in (*_TREE_GROUPS, "attention"):
        return True
    # attention to the source is compared with no trees
    return "parses" not in values and (user != "attention" or values.get("what") != "cross")


def _unused(name: str, users: Sequence[str], values: Mapping[str, Any]) -> UsageError:
    if name == "parser" and "parses" in values:
        return UsageError("`--parses` has the trees, and no parser is needed", do="Leave out `--parser` or `--parses`")
    if name == "parser" and "attention" in values:
        return UsageError("`--what cross` compares nothing with trees", where="--parser", do="Leave out `--parser`")
    *others, last = (f"`--{user.replace('_', '-')}{' tag' * (user == 'words')}`" for user in users)
    add = f"{', '.join(others)} or {last}" if others else last
    return UsageError(f"no chosen analysis uses --{name}", do=f"Add {add}")
