"""A model of the hub is downloaded once by huggingface_hub, here from a server in its place."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from small_run import make_run

from synmt.decode.loaded_model import load_model
from synmt.exchange.export import export

pytest.importorskip("huggingface_hub")

REVISION = "0123456789abcdef0123456789abcdef01234567"


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers what huggingface_hub asks of the hub: every repository has the same files, but one
    that is incomplete lacks the vocabulary, and the weights of a broken one are others."""

    def do_GET(self):
        self.answer(with_body=True)

    def do_HEAD(self):
        self.answer(with_body=False)

    def answer(self, *, with_body):
        path = self.path.partition("?")[0]
        self.requests.append(f"{self.command} {path}")
        if "private" in path:
            return self.reply(401, b"{}", {"X-Error-Code": "GatedRepo"})
        if path.startswith("/api/models/"):
            if "none" in path:
                return self.reply(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            files = dict(self.files)
            if "incomplete" in path:
                del files["vocab.json"]
            names = [{"rfilename": name} for name in files]
            about = {"id": "me/opus-mt-en-de", "sha": REVISION, "siblings": names}
            tree = [self.entry(name, content) for name, content in files.items()]
            return self.reply(200, json.dumps(tree if "/tree/" in path else about).encode(), {})
        content = self.files[path.rpartition("/")[2]]
        digest = hashlib.sha256(content).hexdigest()
        name = path.rpartition("/")[2]
        wrong = "broken" in path and name == "model.safetensors"
        body = content[:-1] + b"x" if wrong else content
        headers = {"ETag": f'"{digest}"', "X-Repo-Commit": REVISION, "Accept-Ranges": "bytes"}
        status, first = 200, 0
        if wanted := self.headers.get("Range"):
            status, first = 206, int(wanted.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {first}-{len(body) - 1}/{len(body)}"
        return self.reply(status, body[first:], headers, with_body, self.cut.pop(name, None))

    def entry(self, name, content):
        digest, size = hashlib.sha256(content).hexdigest(), len(content)
        lfs = {"lfs": {"oid": digest, "size": size, "pointerSize": 100}}
        return {"type": "file", "path": name, "oid": digest[:40], "size": size, **lfs}

    def reply(self, status, body, headers, with_body=True, cut=None):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body if cut is None else body[:cut])
            if cut is not None:
                self.close_connection = True

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub(tmp_path):
    """Serve a model; returns a function that names models in a new process, as a user would, and
    sets variables there."""
    run = make_run(tmp_path / "run")
    loaded = load_model(run, run.recipe(), device="cpu", checkpoint="final")
    parts = loaded.model, loaded.recipe, loaded.source, loaded.target
    export(*parts, tmp_path / "out", "transformers")
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    class Served(Hub):
        pass

    Served.files, Served.requests, Served.cut = files, [], {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = (
        "import json, os, sys; from pathlib import Path\n"
        "from synmt.errors import SynmtError\n"
        "from synmt.run_folder import find_run\n"
        "found = []\n"
        "for text in sys.argv[1:]:\n"
        "    variable, _, value = text.partition('=')\n"
        "    if value: os.environ[variable] = value; continue\n"
        "    try: found.append(str(find_run(Path(text)).folder))\n"
        "    except SynmtError as error: found.append(f'error: {error}')\n"
        "print(json.dumps(found))\n"
    )

    def name(*texts, **environment):
        own = {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_DISABLE_XET": "1",
            "SYNMT_CACHE": str(tmp_path / "cache"),
        }
        done = subprocess.run(
            [sys.executable, "-c", code, *texts],
            env={**os.environ, **own, **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    name.served, name.cache = Served, tmp_path / "hf"
    yield name
    server.shutdown()
    server.server_close()


def test_a_model_is_downloaded_once_and_read_offline(hub):
    hub.served.cut["model.safetensors"] = 1000
    [folder] = hub("hf:me/opus-mt-en-de")
    stored = json.loads((Path(folder) / "run.json").read_text())["pretrained"]
    assert stored["from"] == "hf:me/opus-mt-en-de"
    assert stored["revision"] == REVISION
    digest = hashlib.sha256(hub.served.files["model.safetensors"]).hexdigest()
    assert stored["files"]["model.safetensors"] == digest
    before = len(hub.served.requests)
    assert hub("hf:me/opus-mt-en-de", SYNMT_OFFLINE="1") == [folder]
    assert len(hub.served.requests) == before


def test_what_is_not_there_or_broken_is_said(hub):
    names = "none private-en-de broken incomplete"
    models = [f"hf:me/{name}" for name in names.split()]
    expected = [
        "there is no such model",
        "private",
        "model.safetensors: broken: its content is not that of the hub. Remove",
        "vocab.json: is missing",
        "cannot be downloaded (SYNMT_OFFLINE is set). Copy config.json",
    ]
    said = hub(*models, "SYNMT_OFFLINE=1", "hf:me/opus-mt-en-de")
    for part, message in zip(expected, said, strict=True):
        assert part in message
    [message] = hub("hf:me/opus-mt-en-de", HF_ENDPOINT="http://127.0.0.1:9")
    assert "cannot be downloaded" in message
