"""What a server allows."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from synmt.errors import UsageError
from synmt.options import Option

_server = partial(Option, panel="Server")

_OWN = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where a server listens, who may ask it, and how much at once."""

    serve: Annotated[
        str | None,
        _server(
            "Serve a page and an interface like that of LibreTranslate, instead of translating "
            "(`synmt --docs serve`). Without a host, only this machine reaches it.",
            metavar="[HOST:]PORT",
        ),
    ] = None
    ensemble: Annotated[
        bool, _server("Serve several runs as an ensemble, instead of side by side.")
    ] = False
    api_key: Annotated[
        str | None,
        _server(
            "The key that every request must have; '' lets everybody in.",
            metavar="KEY",
            variable="SYNMT_API_KEY",
            show_default=False,
        ),
    ] = None
    allow_origin: Annotated[
        Sequence[str],
        _server(
            "Web pages of this origin, such as https://example.org, may ask, too.",
            metavar="ORIGIN",
            show_default="none",
        ),
    ] = ()
    max_characters: Annotated[
        int, _server("Most characters in a request; more are answered with 413.", minimum=1)
    ] = 20_000
    max_waiting: Annotated[
        int, _server("Most requests at a time; more are answered with 429.", minimum=1)
    ] = 1_000
    max_seconds: Annotated[
        int, _server("Most seconds for a request; then it is answered with 503.", minimum=1)
    ] = 60

    @property
    def address(self) -> tuple[str, int]:
        """Host and port; raises UsageError for what is not an address."""
        host, _, port = str(self.serve).rpartition(":")
        if not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise UsageError(
                "not an address",
                where=f"--serve {self.serve}",
                allowed="PORT or HOST:PORT, such as 5000, 0.0.0.0:5000 or [::1]:5000",
            )
        return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)

    @property
    def hosts(self) -> list[str]:
        """The names under which browsers may ask for the server, so that no other name can be
        pointed at it; empty if all may, since it listens everywhere."""
        host = self.address[0]
        if host in ("0.0.0.0", "::"):
            return []
        return [*_OWN, host]

    @property
    def is_open(self) -> bool:
        """Whether other machines reach it; raises UsageError if they need no key, and that was
        not allowed."""
        host = self.address[0]
        try:
            is_own = ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_own = host == "localhost"
        if not is_own and self.api_key is None:
            raise UsageError(
                "other machines reach this address, and no key is set",
                where=f"--serve {self.serve}",
                do="Add `--api-key KEY`, or `--api-key ''` to let everybody in",
            )
        return not is_own
