"""A web server on this machine for tests of downloads, with everything that goes wrong with real
ones."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from synmt.corpora import download


@dataclass
class Fault:
    """What goes wrong with one file.

    breaks: how many answers end after half of their bytes, with the connection.
    pause: seconds before each of the ten parts of an answer.
    status: an HTTP status in place of the file.
    no_ranges: every answer starts at the first byte, whatever is asked for.
    no_version: answers do not name the version of the file.
    kind: the media type of the answers.
    """

    breaks: int = 0
    pause: float = 0.0
    status: int = 0
    no_ranges: bool = False
    no_version: bool = False
    kind: str = "application/gzip"


@dataclass
class CorpusServer:
    """The files of a running server, by `host/path`.

    address: `http://127.0.0.1:port`, for `SYNMT_MIRROR`.
    files: contents, or functions that make them when they are first asked for.
    faults: what goes wrong, by the same names.
    requests: how often each file was asked for.
    ranges: the `Range` headers that came, in order.
    """

    address: str
    files: dict[str, bytes | Callable[[], bytes]]
    faults: dict[str, Fault] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    ranges: list[str] = field(default_factory=list)

    def content(self, name: str) -> bytes | None:
        """Return the bytes of a file, or None if there is no such file."""
        found = self.files.get(name)
        if callable(found):
            found = self.files[name] = found()
        return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    corpora: CorpusServer

    def log_message(self, format, *args):
        """Print nothing."""

    def do_HEAD(self):
        self._answer(with_body=False)

    def do_GET(self):
        self._answer(with_body=True)

    def _answer(self, *, with_body):
        name = self.path.lstrip("/")
        fault = self.corpora.faults.get(name, Fault())
        self.corpora.requests[name] += with_body
        content = self.corpora.content(name)
        if content is None or fault.status:
            self._refuse(fault.status or 404)
            return
        start = 0 if fault.no_ranges else self._start(content)
        if start and start >= len(content):
            self._refuse(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Accept-Ranges", "none" if fault.no_ranges else "bytes")
        self.send_header("Content-Type", fault.kind)
        if not fault.no_version:
            self.send_header("ETag", _tag(content))
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if with_body:
            self._send(content[start:], fault)

    def _start(self, content):
        given = self.headers.get("Range")
        if given is None:
            return 0
        self.corpora.ranges.append(given)
        unchanged = self.headers.get("If-Range", _tag(content)) == _tag(content)
        match = re.fullmatch(r"bytes=(\d+)-", given)
        return int(match[1]) if match and unchanged else 0

    def _refuse(self, status):
        body = b"<html><body>Sorry.</body></html>"
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _send(self, body, fault):
        if fault.breaks:
            fault.breaks -= 1
            body, self.close_connection = body[: len(body) // 2], True
        size = max(1, len(body) // 10)
        for place in range(0, len(body), size):
            time.sleep(fault.pause)
            self.wfile.write(body[place : place + size])
            self.wfile.flush()


def _tag(content):
    return f'"{sha256(content).hexdigest()[:16]}"'


@contextmanager
def serving(files: Mapping[str, bytes | Callable[[], bytes]]) -> Iterator[CorpusServer]:
    """Serve files, named `host/path`, on a free port of this machine."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        handler.corpora = CorpusServer(f"http://127.0.0.1:{server.server_address[1]}", dict(files))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield handler.corpora
        finally:
            server.shutdown()
            thread.join()


def come_online(patch: pytest.MonkeyPatch, cache: Path) -> None:
    """Start with an empty cache, no corpora of the machine, and a network that does not wait."""
    patch.setenv("SYNMT_CACHE", str(cache))
    for name in ("SYNMT_DATA", "SYNMT_OFFLINE", "SYNMT_ASPEC", "SYNMT_MIRROR"):
        patch.delenv(name, raising=False)
    patch.setattr(download, "PAUSES", (0.0, 0.0, 0.0))
