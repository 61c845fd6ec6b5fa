"""What protects the server: other hosts and pages are refused, answers close the page, and
the size of each request is logged, never what it says."""

from __future__ import annotations

import logging
import time
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from synmt.serve.options import ServerOptions

_logger = logging.getLogger(__name__)

_HEAD = 16_000
"""Most bytes of the headers of a request."""

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Passes requests on that may be answered.

    app: what answers them.
    """

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self.app, self.hosts = app, options.hosts
        self.origins = {urlsplit(origin).netloc for origin in options.allow_origin}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if it is allowed."""
        request, began = Request(scope), time.monotonic()
        status, problem = self._problem(request)

        async def closed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = JSONResponse({"error": problem}, status_code=status or 200)
        try:
            await (answer if problem else self.app)(scope, receive, closed)
        except ClientDisconnect:
            return
        size = request.headers.get("content-length", 0)
        _logger.debug(
            "%s %s: %s bytes, %d, %.0f ms",
            *(scope["method"], scope["path"], size, status, 1000 * (time.monotonic() - began)),
        )

    def _problem(self, request: Request) -> tuple[int, str]:
        """Say why a request is not allowed, after its status; 0 if it is."""
        if sum(len(name) + len(value) for name, value in request.scope["headers"]) > _HEAD:
            return 431, "The headers are too long."
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        try:
            name, page = urlsplit(f"//{host}").hostname, urlsplit(origin or "").netloc
        except ValueError:
            return 400, "The headers Host and Origin are wrong."
        if self.hosts and name not in self.hosts:
            return 400, f"This server is not known by that name. Ask for {self.hosts[0]}."
        if origin is not None and page not in {host, *self.origins}:
            return 400, "Pages of other sites may not ask this server; --allow-origin lets them."
        return 0, ""
