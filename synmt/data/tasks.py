"""The tags that tell a multi-task model whether to translate or to parse."""

from __future__ import annotations

from synmt.recipe.schema import Recipe

TRANSLATION, PARSING = "<TR>", "<PA>"


def task_tags(recipe: Recipe) -> tuple[str, ...]:
    """List the tags that the vocabulary has as pieces."""
    return () if recipe.tasks.parsing == "none" else (TRANSLATION, PARSING)


def tagged(text: str, tag: str) -> str:
    """Put a task tag before and after a source; an empty tag leaves it unchanged."""
    return f"{tag} {text} {tag}" if tag else text
