"""What may be asked of a server, and its description for other programs (OpenAPI)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from synmt import __version__
from synmt.arrays import Values


class _Asked(BaseModel):
    """A request; what other servers know besides is ignored."""

    model_config = ConfigDict(str_max_length=10_000_000)

    api_key: str = ""


class Translate(_Asked):
    """Text to translate."""

    q: Annotated[str | list[str], Field(description="A text, or a list of texts.")]
    source: Annotated[str, Field(description="Its language; `auto`: it is found.")] = "auto"
    target: Annotated[str, Field(description="The language to translate into.")] = ""
    format: Literal["text"] = "text"
    alternatives: Annotated[
        int, Field(ge=0, le=100, description="Other translations; at most the beam size less 1.")
    ] = 0


class Detect(_Asked):
    """Text whose language is asked for."""

    q: Annotated[str, Field(min_length=1)]


class Explain(_Asked):
    """A sentence, and the tree that the model reads with it."""

    q: Annotated[str, Field(description="One sentence.")]
    run: Annotated[str, Field(description="The run; by default the first one.")] = ""
    target: Annotated[str, Field(description="The language to translate into.")] = ""
    tree: Annotated[
        Literal["parser", "random", "left", "right", "shuffled"],
        Field(description="The parser's tree, or one that replaces it."),
    ] = "parser"
    heads: Annotated[
        list[int] | None,
        Field(description="Another tree: the parent of each word, from 1; 0 for the root."),
    ] = None
    alternatives: Annotated[int, Field(ge=0, le=100)] = 4


_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}}


def description() -> Values:
    """Describe the interface in OpenAPI 3.1."""
    asked: dict[str, tuple[type[_Asked], str]] = {
        "/translate": (Translate, "Translate text."),
        "/detect": (Detect, "Guess the language of a text."),
        "/explain": (Explain, "Translate a sentence and show what the model makes of it."),
    }
    told = {
        "/languages": "List the languages.",
        "/frontend/settings": "List the settings and runs.",
        "/health": "Say that the server works.",
    }
    replies = {
        "200": {"description": "The answer.", "content": _json({"type": "object"})},
        "4XX": {"description": "What is wrong with the request.", "content": _json(_ERROR)},
        "503": {"description": "It took too long.", "content": _json(_ERROR)},
    }
    paths: Values = {
        path: {"get": {"summary": summary, "responses": replies}} for path, summary in told.items()
    }
    for path, (model, summary) in asked.items():
        schema = model.model_json_schema()
        body = {kind: {"schema": schema} for kind in ("application/json", _FORM)}
        operation = {"summary": summary, "requestBody": {"content": body}, "responses": replies}
        paths[path] = {"post": operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "synmt", "version": __version__},
        "paths": paths,
    }


_FORM = "application/x-www-form-urlencoded"


def _json(schema: Values) -> Values:
    return {"application/json": {"schema": schema}}
