"""A server in a thread of the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from small_run import PASCAL, make_run

from synmt.decode.translator import Translator
from synmt.serve.app import App
from synmt.serve.desk import Served
from synmt.serve.options import ServerOptions
from synmt.serve.run import listen, make_server

OPTIONS = {
    "device": "cpu",
    "parse_cache": False,
    "beam_size": 3,
    # small windows, and translations that end
    "batch_size": 4,
    "max_length_ratio": 1.0,
    "max_length_extra": 4,
}


def make_served(folder: Any) -> list[Served]:
    """Make two runs, of which the first reads trees."""
    runs = make_run(folder / "pascal", PASCAL), make_run(folder / "plain", parser=False)
    return [Served(run.folder.name, Translator.load(run, **OPTIONS)) for run in runs]


@contextmanager
def serving(served: list[Served], **options: Any) -> Iterator[tuple[httpx.Client, App]]:
    """Serve runs at a free port."""
    settings = ServerOptions(**{"serve": "0", **options})
    listening = listen(settings)
    app = App(served, settings)
    server = make_server(app)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with httpx.Client(base_url=address, timeout=30) as client:
            while not server.started:
                time.sleep(0.01)
            yield client, app
    finally:
        server.should_exit = True
        thread.join()
        app.desk.close()


def post(client: httpx.Client, path: str, fields: Mapping[str, Any]) -> Any:
    """Ask for what must be answered."""
    answer = client.post(path, json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()
