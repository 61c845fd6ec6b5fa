"""Programs ask a server: translations are those of the command, wrong requests are refused, and
nothing stops it."""

import asyncio
import json
import logging
import os
import random
import re
import signal
import socket
import string
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from cases import cases
from refusing import assert_refused
from serving import post, serving
from small_run import TEXT, make_run
from tiny import fail

from synmt.decode.translator import Translator
from synmt.serve.desk import Desk
from synmt.serve.options import ServerOptions

pytestmark = pytest.mark.journey

MOST, LONGEST = 8, 400
DOG = {"q": "A dog.", "source": "en"}


@pytest.fixture(scope="module")
def client(served):
    with serving(served, max_characters=LONGEST, max_waiting=MOST, max_seconds=4) as (client, _):
        yield client


@pytest.fixture
def slow(served, monkeypatch):
    """Let each batch take a while; lists the batches."""
    batches, translate = [], Translator.translate

    def slowly(self, lines, *others):
        batches.append(list(lines))
        time.sleep(0.3)
        return translate(self, lines, *others)

    monkeypatch.setattr(Translator, "translate", slowly)
    return batches


def test_a_client_of_libretranslate_is_served(client, served):
    from libretranslatepy import LibreTranslateAPI

    api = LibreTranslateAPI(str(client.base_url))
    [expected] = served[0].translator.translate(TEXT[:1])
    assert api.translate(TEXT[0], "en", "de") == expected.text
    assert api.languages()[0] == {"code": "en", "name": "English", "targets": ["de"]}
    best = api.detect("Das ist ein Haus, und daneben steht ein Baum.")[0]
    assert (best["language"], best["confidence"] > 90) == ("de", True)


def test_texts_lists_and_alternatives_are_those_of_the_translator(client, served):
    lines = [TEXT[0], "", f"{TEXT[1]} {TEXT[2]}", "A dog.\n\nThe cats."]
    parts = [TEXT[0], TEXT[1], TEXT[2], "A dog.", "The cats."]
    usual = served[0].variety(3, "de")
    best, first, second, third, fourth = usual.translate(parts)
    answer = post(client, "/translate", {"q": lines, "target": "de", "alternatives": 2})
    whole = [best.text, "", f"{first.text} {second.text}", f"{third.text}\n\n{fourth.text}"]
    assert answer["translatedText"] == whole
    assert answer["alternatives"][0] == [one.text for one in best.candidates[1:]]
    assert answer["detectedLanguage"][0]["language"] == "en"
    # a form, and a wider beam than there is
    form = client.post("/translate", data={"q": TEXT[0], "source": "en", "alternatives": "50"})
    assert form.json()["translatedText"] == best.text
    assert len(form.json()["alternatives"]) == 2


def test_what_is_explained_has_the_tree_that_was_asked_for(client):
    heads = [2, 3, 0, 3, 4, 5]
    found = post(client, "/explain", {"q": TEXT[0], "heads": heads})
    assert [word["head"] for word in found["words"]] == heads
    assert found["svg"].startswith("<svg")
    plain = post(client, "/explain", {"q": TEXT[0], "run": "plain", "tree": "left"})
    assert (plain["run"], plain["reads"]) == ("plain", "")
    assert [word["head"] for word in plain["words"]] == [2, 3, 4, 5, 6, 0]
    runs = client.get("/frontend/settings").json()["runs"]
    assert [(run["name"], run["reads"]) for run in runs] == [("pascal", "trees"), ("plain", "")]


def test_requests_that_arrive_together_share_a_batch_and_a_long_one_waits_its_turn(served, slow):
    lines = [f"The {word} sleeps." for word in string.ascii_lowercase]
    expected = [one.text for one in served[1].translator.translate(lines)]
    slow.clear()
    with serving(served[1:]) as (client, _), ThreadPoolExecutor(len(lines)) as pool:
        found = list(
            pool.map(lambda line: post(client, "/translate", {"q": line, "source": "en"}), lines)
        )
        assert [one["translatedText"] for one in found] == expected
        assert len(slow) < 5
        # a text of four windows, and a sentence that comes later
        long = pool.submit(post, client, "/translate", {"q": ["A dog."] * 130, "source": "en"})
        time.sleep(0.1)
        post(client, "/translate", DOG)
        assert not long.done()
        assert len(long.result()["translatedText"]) == 130


REFUSED = """
translate | {"q": 1} | 400 | q: must be
translate | {"q": "a", "format": "html"} | 400 | format: must be 'text'
translate | {"q": "a", "source": "fr"} | 400 | no run translates from 'fr' to ''. Served: en to de.
translate | {"q": "a", "alternatives": -1} | 400 | alternatives: must be greater
translate | {"q": | 400 | The body cannot be read
translate | [] | 400 | body: must be
translate | {} | 400 | q: field required
explain | {"q": "a", "run": "plan"} | 400 | no run 'plan' is served. Did you mean 'plain'?
explain | {"q": "a", "heads": [2, 1]} | 400 | heads: not a tree of this sentence
explain | {"q": "a", "target": "fr"} | 400 | pascal does not translate into 'fr'
nothing | {} | 404 | Not Found
health | {} | 405 | Method Not Allowed
"""


@pytest.mark.parametrize(("path", "body", "status", "message"), cases(REFUSED, "|"))
def test_a_wrong_request_is_answered_with_what_is_wrong(path, body, status, message, client):
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, message in answer.json()["error"]) == (int(status), True)


def test_limits_are_kept(client, slow):
    assert client.post("/translate", json={"q": "a" * (LONGEST + 1)}).status_code == 413
    # neither what is announced nor what comes unannounced is read to its end
    assert client.post("/detect", content=b"a" * 10_000).status_code == 413
    head = f"POST /detect HTTP/1.1\r\nHost: {client.base_url.host}\r\n"
    endless = f"{head}Transfer-Encoding: chunked\r\n\r\nfffff\r\n{'a' * 9000}"
    assert raw(client, endless.encode()) == b"HTTP/1.1 413"
    assert client.post("/detect", files={"q": b"text"}).status_code == 415
    with ThreadPoolExecutor(2 * MOST) as pool:
        answers = list(pool.map(lambda _: client.post("/translate", json=DOG), range(2 * MOST)))
    counts = {answer.status_code for answer in answers}
    assert counts == {200, 429}
    assert all(one.headers["retry-after"] for one in answers if one.status_code == 429)


def test_what_takes_too_long_or_is_not_waited_for_costs_nothing_more(served, slow):
    with serving(served[1:], max_seconds=1, max_waiting=2) as (client, app):
        fields = {"q": ["A dog."] * 400, "source": "en"}
        answer = client.post("/translate", json=fields)
        assert answer.status_code == 503
        assert "more than 1 seconds. Try again later." in answer.json()["error"]
        with pytest.raises(httpx.ReadTimeout):
            client.post("/translate", json=fields, timeout=0.2)
        time.sleep(0.5)
        done = len(slow)
        assert post(client, "/translate", DOG)
        assert len(slow) <= done + 2
        assert not app.desk._waiting


def test_a_request_that_comes_as_the_only_worker_ends_is_answered(served):
    async def twice():
        desk = Desk(2, 1)
        for _ in range(2):
            await desk.translate(served[1].translator, ["A dog."])
        desk.close()

    asyncio.run(asyncio.wait_for(twice(), 30))


def test_only_those_who_may_ask_are_answered(served):
    with serving(served[1:], api_key="secret", allow_origin=["https://a.example"]) as (client, _):
        for key in ("", "other", "sécret"):
            assert client.post("/translate", json={**DOG, "api_key": key}).status_code == 403
        right = {**DOG, "api_key": "secret"}
        assert client.post("/translate", json=right).status_code == 200
        cors = "access-control-allow-origin"
        for origin, status in {"https://a.example": 200, "https://b.example": 400}.items():
            answer = client.post("/translate", json=right, headers={"origin": origin})
            assert answer.status_code == status
            assert answer.headers.get(cors) == (origin if status == 200 else None)
        own = str(client.base_url).rstrip("/")
        answer = client.post("/translate", json=right, headers={"origin": own})
        assert (answer.status_code, cors in answer.headers) == (200, False)
        for host in ("evil.example", "127.0.0.1.evil.example", "[", ""):
            assert client.get("/health", headers={"host": host}).status_code == 400


def test_answers_close_the_page_and_nothing_that_is_asked_is_logged(client, caplog):
    caplog.set_level(logging.DEBUG, "synmt")
    post(client, "/translate", {"q": "Zanzibar.", "source": "en"})
    client.post("/translate", json={"q": "Zanzibar.", "source": "fr"})
    page = client.get("/")
    for header in ("content-security-policy", "x-content-type-options", "referrer-policy"):
        assert header in page.headers
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "server" not in page.headers
    said = [record.getMessage() for record in caplog.records if record.name.startswith("synmt")]
    assert re.match(r"POST /translate: \d+ bytes, 200, \d+ ms", said[0])
    assert "Zanzibar" not in "".join(said)


def test_the_description_says_what_is_answered(client):
    described = client.get("/openapi.json").json()
    for path, operations in described["paths"].items():
        for method in operations:
            answer = client.request(method, path, json={"q": "A dog."})
            assert answer.status_code == 200, path


def raw(client, content):
    """Send bytes, and read how the answer begins."""
    with socket.create_connection((client.base_url.host, client.base_url.port)) as connection:
        connection.sendall(content)
        connection.settimeout(10)
        return connection.recv(12)


def test_no_request_stops_it(client, caplog):
    host = f"Host: {client.base_url.host}:{client.base_url.port}\r\n"
    for head in (
        "GET / HTTP/1.1\r\n" + host + "X: " + "a" * 100_000 + "\r\n\r\n",
        "GET /../../etc/passwd HTTP/1.1\r\n" + host + "\r\n",
        "GET /page.js/%2e%2e/%2e%2e/app.py HTTP/1.1\r\n" + host + "\r\n",
        "NONSENSE\r\n\r\n",
        "POST /translate HTTP/1.1\r\n" + host + "Content-Length: -5\r\n\r\n",
    ):
        assert raw(client, head.encode()).startswith(b"HTTP/1.1 4")
    random.seed(2)
    bits = [
        '{"q":',
        '"a"',
        "[",
        "]",
        "null",
        "1e999",
        '"\\ud800"',
        ",",
        '"heads":',
        "}",
        "\x00",
        "{",
    ]
    for _ in range(80):
        body = "".join(random.choices(bits, k=random.randrange(8))).encode()
        kind = random.choice(["application/json", "application/x-www-form-urlencoded", "", "x"])
        path = random.choice(["/translate", "/explain", "/detect", "/%00", "/languages"])
        answer = client.post(path, content=body, headers={"content-type": kind})
        assert answer.status_code == 200 or 400 <= answer.status_code < 500, (path, body)
        json.loads(answer.content)
    assert "Traceback" not in caplog.text
    assert client.get("/health").json() == {"status": "ok"}


def test_slow_clients_are_hung_up_on(client, monkeypatch):
    monkeypatch.setattr("synmt.serve.run._PATIENCE", 0.3)
    monkeypatch.setattr("synmt.serve.app._READING", 0.3)
    head = f"POST /detect HTTP/1.1\r\nHost: {client.base_url.host}\r\nContent-Length: 50\r\n\r\n"
    assert raw(client, b"GET / HT") == b""
    assert raw(client, head.encode()) == b"HTTP/1.1 408"


def test_sigterm_lets_what_has_begun_end(tmp_path):
    run = make_run(tmp_path / "run", parser=False)
    command = [sys.executable, "-m", "synmt", "translate", "--serve", "0", "--run", run.folder]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        address = process.stderr.readline().split()[2]
        assert address.startswith("http://127.0.0.1:")
        fields = {"q": TEXT * 15, "source": "en"}
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(httpx.post, f"{address}/translate", json=fields, timeout=60)
            time.sleep(0.5)
            assert not asking.done()
            os.kill(process.pid, signal.SIGTERM)
            assert len(asking.result().json()["translatedText"]) == 90
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()


def test_a_command_line_that_opens_too_much_is_refused(tmp_path, served):
    assert ServerOptions(serve="[::1]:80").address == ("::1", 80)
    assert not ServerOptions(serve="localhost:80").is_open
    assert ServerOptions(serve="0.0.0.0:80", api_key="").is_open
    assert_refused(
        "other machines reach this address, and no key is set",
        lambda: ServerOptions(serve="0.0.0.0:80").is_open,
    )
    for text in ("host", "host:", ":99999", "a:b", "-1"):
        assert_refused("not an address", lambda text=text: ServerOptions(serve=text).address)
    run = make_run(tmp_path / "run")
    wrong = ("translate", "--run", run.folder)
    assert "--api-key: only with --serve" in fail(2, *wrong, "--api-key", "a")
    message = fail(2, *wrong, "--serve", "80", "--jsonl", "--output", "a")
    assert "--jsonl, --output: not with --serve" in message
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "cannot listen there" in fail(2, *wrong, "--serve", port)
