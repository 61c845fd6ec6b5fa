"""The server: an interface like that of LibreTranslate, `/explain`, and the page.

Every answer to a wrong request is `{"error": "…"}`, with what is wrong and what to do.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from synmt.arrays import Values
from synmt.decode.inputs import workers
from synmt.errors import SynmtError, UsageError, did_you_mean, plain_message
from synmt.files.language import ranked_languages
from synmt.parsing.stanza_internals import language_name
from synmt.serve.desk import Busy, Desk, Served
from synmt.serve.guard import Guard
from synmt.serve.options import ServerOptions
from synmt.serve.requests import Detect, Explain, Translate, description
from synmt.serve.texts import rejoin, sentences
from synmt.syntax.controls import Control

T = TypeVar("T")

_logger = logging.getLogger(__name__)

_PAGE = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_BYTES = 8
"""Bytes that a character may take in a body: `\\ud83d` has six, and there are other fields."""
_READING = 10
"""Seconds in which a body has to arrive."""


class App:
    """What the server answers.

    served: the runs, in the order of the command line.
    """

    def __init__(self, served: Sequence[Served], options: ServerOptions) -> None:
        self.served, self.options = served, options
        self.desk = Desk(options.max_waiting, workers(served[0].translator.device))

    def starlette(self) -> Starlette:
        """Make the application."""
        asked = {
            "/translate": (Translate, self.translate),
            "/detect": (Detect, self.detect),
            "/explain": (Explain, self.explain),
        }
        told = {
            "/languages": self.languages,
            "/frontend/settings": self.settings,
            "/health": lambda: {"status": "ok"},
            "/openapi.json": description,
        }
        routes = [
            Route(path, partial(self._answer, model, answer), methods=["POST"])
            for path, (model, answer) in asked.items()
        ]
        routes += [Route(path, partial(_tell, tell)) for path, tell in told.items()]
        for path, (name, kind) in _PAGE.items():
            content = (Path(__file__).parent / "page" / name).read_bytes()
            routes.append(Route(path, partial(_send, content, kind)))
        origins = list(self.options.allow_origin)
        guards = [Middleware(Guard, options=self.options)]
        if origins:
            guards.append(
                Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"])
            )
        handlers: dict[Any, Any] = {HTTPException: _refused, Exception: _failed}
        return Starlette(routes=routes, middleware=guards, exception_handlers=handlers)

    async def _answer(
        self, model: type[T], answer: Callable[[T], Awaitable[Any]], request: Request
    ) -> Response:
        """Read a request of one kind and answer it, as long as the client waits."""
        asked = _checked(model, await self._fields(request))
        key = self.options.api_key
        if key and not hmac.compare_digest(asked.api_key.encode(), key.encode()):  # type: ignore[attr-defined]
            raise HTTPException(403, "The key is missing or wrong. Send the right one as api_key.")
        working = asyncio.ensure_future(answer(asked))
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait(
                {working, gone},
                timeout=self.options.max_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if working.done():
                return JSONResponse(working.result())
            if gone.done():
                return Response(status_code=499)
            raise _try_later(503, f"This took more than {self.options.max_seconds} seconds.")
        except Busy:
            raise _try_later(429, "Too many requests are waiting.") from None
        except SynmtError as error:
            raise HTTPException(400, str(error)) from error
        finally:
            working.cancel()
            gone.cancel()

    async def _fields(self, request: Request) -> Any:
        """Read the fields of a body, JSON or a form, as far as its size is allowed."""
        try:
            body = await asyncio.wait_for(self._body(request), _READING)
        except asyncio.TimeoutError:
            raise HTTPException(408, f"The body did not come in {_READING} seconds.") from None
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            if kind == "application/json":
                return json.loads(body)
            if kind in ("application/x-www-form-urlencoded", ""):
                fields = parse_qs(
                    body.decode(),
                    keep_blank_values=True,
                    strict_parsing=bool(body),
                    errors="strict",
                )
                return {
                    name: values[0] if len(values) == 1 else values
                    for name, values in fields.items()
                }
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"The body cannot be read: {error}.") from error
        raise HTTPException(415, "Send application/json or application/x-www-form-urlencoded.")

    async def _body(self, request: Request) -> bytes:
        most = self.options.max_characters * _BYTES + 1000
        stated = request.headers.get("content-length", "0")
        if stated.isascii() and stated.isdigit() and int(stated) > most:
            raise self._too_long()
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > most:
                raise self._too_long()
        return body

    def _check_size(self, texts: Sequence[str]) -> None:
        if sum(map(len, texts)) > self.options.max_characters:
            raise self._too_long()

    def _too_long(self) -> HTTPException:
        most = self.options.max_characters
        return HTTPException(413, f"The text is too long. Allowed: {most:,} characters.")

    async def translate(self, asked: Translate) -> Values:
        """Translate texts with the first run that has the languages."""
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        self._check_size(texts)
        detected = self._detected(" ".join(texts)) if asked.source == "auto" else None
        source = detected["language"] if detected else asked.source
        served, target = self._find(source, asked.target)
        translator = served.variety(asked.alternatives + 1, target)
        parts = list(map(sentences, texts))
        lines = [sentence for of_text in parts for sentence, _ in of_text]
        translations = iter(await self.desk.translate(translator, lines))
        count = 1 + min(asked.alternatives, translator.options.n_best - 1)
        versions = list[list[str]]()
        for of_text in parts:
            found = [next(translations).candidates for _ in of_text]
            chosen = (
                # a line without text has no candidates
                [some[min(number, len(some) - 1)].text if some else "" for some in found]
                for number in range(count)
            )
            versions.append([rejoin(of_text, translated) for translated in chosen])
        first = [version for version, *_ in versions]
        others = [list(dict.fromkeys(rest)) for _, *rest in versions]
        is_one = isinstance(asked.q, str)
        answer: Values = {"translatedText": first[0] if is_one else first}
        if asked.alternatives:
            answer["alternatives"] = others[0] if is_one else others
        if detected:
            answer["detectedLanguage"] = detected if is_one else [detected] * len(texts)
        return answer

    def _find(self, source: str, target: str) -> tuple[Served, str]:
        """Find the first run for a pair of languages."""
        for served in self.served:
            if served.source == source and target in ("", *served.targets):
                return served, target or served.targets[0]
        pairs = [f"{one.source} to {', '.join(one.targets[:5])}" for one in self.served]
        raise UsageError(
            f"no run translates from '{source}' to '{target}'",
            allowed=f"Served: {'; '.join(dict.fromkeys(pairs))}",
        )

    async def detect(self, asked: Detect) -> list[Values]:
        """Rank the languages that a text may be in, as py3langid does."""
        self._check_size([asked.q])
        return [_guess(*ranked) for ranked in ranked_languages(asked.q)[:5]]

    def _detected(self, text: str) -> Values:
        """Choose the most probable one of the source languages of the runs."""
        shares = dict(ranked_languages(text))
        best = max((one.source for one in self.served), key=lambda code: shares.get(code, 0.0))
        return _guess(best, shares.get(best, 0.0))

    async def explain(self, asked: Explain) -> Values:
        """Translate a sentence with one run, with a tree that may be another one."""
        self._check_size([asked.q])
        names = {served.name: served for served in self.served}
        served = names.get(asked.run or self.served[0].name)
        if served is None:
            raise UsageError(
                f"no run '{asked.run}' is served", do=did_you_mean(asked.run, list(names))
            )
        target = asked.target or served.targets[0]
        if target not in served.targets:
            raise UsageError(f"{served.name} does not translate into '{target}'")
        translator = served.variety(asked.alternatives + 1, target)

        control = None if asked.tree == "parser" else Control(asked.tree)
        tree = control if asked.heads is None else asked.heads
        line = " ".join(asked.q.split())
        explanation = await self.desk.call(partial(translator.explain, line, tree))
        return {
            "run": served.name,
            "source": served.source,
            "target": target,
            **explanation.to_json(),
        }

    def languages(self) -> list[Values]:
        """List source languages with their targets, and the targets themselves."""
        targets: dict[str, list[str]] = {}
        for served in self.served:
            known = targets.setdefault(served.source, [])
            known += [target for target in served.targets if target not in known]
        for served in self.served:
            for target in served.targets:
                targets.setdefault(target, [])
        return [{**_language(code), "targets": of_code} for code, of_code in targets.items()]

    def settings(self) -> Values:
        """Say what a page needs to know."""
        first, needs_key = self.served[0], bool(self.options.api_key)

        return {
            "apiKeys": needs_key,
            "keyRequired": needs_key,
            "charLimit": self.options.max_characters,
            "frontendTimeout": 500,
            "language": {
                "source": _language(first.source),
                "target": _language(first.targets[0]),
            },
            "suggestions": False,
            "supportedFilesFormat": [],
            "runs": [
                {
                    "name": served.name,
                    "source": _language(served.source),
                    "targets": list(map(_language, served.targets)),
                    "reads": served.translator.tree_kind,
                }
                for served in self.served
            ],
        }


def _guess(code: str, share: float) -> Values:
    return {"language": code, "confidence": round(100 * share, 1)}


def _language(code: str) -> dict[str, str]:
    return {"code": code, "name": language_name(code)}


def _checked(model: type[T], fields: Any) -> T:
    try:
        return model.model_validate(fields)  # type: ignore[attr-defined]
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        # after the field come the kinds of values that it may have
        where = problem["loc"][0] if problem["loc"] else "body"
        raise HTTPException(400, f"{where}: {plain_message(problem)}.") from error


async def _gone(request: Request) -> None:
    """Return when the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _tell(tell: Callable[[], Any], request: Request) -> Response:
    return JSONResponse(tell())


async def _send(content: bytes, kind: str, request: Request) -> Response:
    return Response(content, media_type=kind)


def _try_later(status: int, what: str) -> HTTPException:
    return HTTPException(status, f"{what} Try again later.", headers={"Retry-After": "2"})


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse(
        {"error": error.detail}, status_code=error.status_code, headers=error.headers
    )


def _failed(request: Request, error: Exception) -> Response:
    _logger.error("a request failed", exc_info=error)
    return JSONResponse({"error": "The server failed. Its log says why."}, status_code=500)
