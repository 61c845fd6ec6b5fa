"""Load the runs and serve them until the process is told to end."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from synmt.decode.inputs import SWITCH_INTERVAL
from synmt.errors import UsageError
from synmt.serve.app import App
from synmt.serve.desk import Served
from synmt.serve.options import ServerOptions

_PATIENCE = 10
"""Seconds in which the head of a request has to arrive."""


class _Impatient(H11Protocol):
    """Hangs up on clients that send the head of a request too slowly."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._late = self.loop.call_later(_PATIENCE, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._late.cancel()
        super().connection_lost(exc)

    def _hang_up(self) -> None:
        # a request that has arrived takes its time, and then the server waits for the next one
        if self.cycle is None:
            self.transport.close()


def listen(options: ServerOptions) -> socket.socket:
    """Open the address of a server; raises UsageError if that is not possible."""
    host, port = options.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UsageError(
            f"cannot listen there: {error.strerror or error}", where=f"--serve {options.serve}"
        ) from error


def make_server(app: App) -> uvicorn.Server:
    """Make the server of an application."""
    config = uvicorn.Config(
        app.starlette(),
        http=_Impatient,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=app.options.max_seconds,
    )
    return uvicorn.Server(config)


def serve(served: Sequence[Served], options: ServerOptions, listening: socket.socket) -> None:
    """Answer requests until SIGINT or SIGTERM; what has begun is finished."""
    app = App(served, options)
    # each time that it reads or writes, the thread of the requests waits for its turn, by default
    # for 5 ms
    sys.setswitchinterval(SWITCH_INTERVAL)
    # uvicorn repeats the signal when it has ended
    with suppress(KeyboardInterrupt):
        make_server(app).run(sockets=[listening])
    app.desk.close()
