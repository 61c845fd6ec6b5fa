"""Downloads from a local server: continued where they broke off, checked, and refused with what to
do."""

import hashlib
import shutil
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from synmt.corpora import download as downloading
from synmt.corpora.download import RemoteFile, bytes_to_fetch, download_all, local_path
from synmt.errors import SynmtError
from synmt.files.reading import fingerprint

pytestmark = pytest.mark.journey

CONTENT = bytes(range(256)) * 4000
"""A million bytes, of which every part is different enough to notice a wrong order."""


class Server(ThreadingHTTPServer):
    """Serves one file; its fields say how badly.

    breaks: after how many bytes each of the next answers ends.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.version, self.kind = CONTENT, '"one"', "application/gzip"
        self.breaks, self.status, self.asked, self.paths = [], 200, [], []
        self.ranges, self.pause = True, 0.0

    def handle_error(self, *_):
        """Say nothing: some clients go away."""

    def address(self, name="a/file.tgz"):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        server = self.server
        wanted = self.headers.get("Range")
        server.asked.append((self.command, wanted, self.headers.get("If-Range")))
        server.paths.append(self.path)
        time.sleep(server.pause)
        if server.status != 200:
            self.send_error(server.status)
            return
        start = 0
        if wanted and server.ranges and self.headers.get("If-Range") == server.version:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header(
                "Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}"
            )
        else:
            self.send_response(200)
        self.send_header("Content-Type", server.kind)
        self.send_header("Content-Length", str(len(server.content) - start))
        if server.version:
            self.send_header("ETag", server.version)
        self.end_headers()
        if body:
            end = start + server.breaks.pop(0) if server.breaks else None
            self.wfile.write(server.content[start:end])

    def log_message(self, *_):
        """Say nothing."""


def download(file):
    return download_all([file])[0]


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path))
    monkeypatch.delenv("SYNMT_OFFLINE", raising=False)
    monkeypatch.delenv("SYNMT_MIRROR", raising=False)
    monkeypatch.setattr(downloading, "PAUSES", (0.0, 0.0, 0.0))
    with Server() as running:
        threading.Thread(
            target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        yield running
        running.shutdown()


def test_a_file_is_downloaded_once_into_a_folder_of_its_server(server, tmp_path):
    file = RemoteFile(server.address(), hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    path = download(file)
    assert path == tmp_path / "downloads" / f"127.0.0.1_{server.server_port}" / "a" / "file.tgz"
    assert path.read_bytes() == CONTENT
    assert download(file) == path
    assert len(server.asked) == 1
    assert sorted(other.name for other in path.parent.iterdir()) == [".file.tgz.lock", "file.tgz"]


def test_progress_is_reported_in_megabytes(server, monkeypatch):
    shown = []

    @contextmanager
    def display(what, total, unit):
        amounts = []
        shown.append((what, total, unit, amounts))
        yield amounts.append

    monkeypatch.setattr("synmt.reporting.progress._display", display)
    server.breaks = [300_000]
    download(RemoteFile(server.address()))
    assert [job[:3] for job in shown] == [("download file.tgz", 1.024, "MB")] * 2
    first, second = (amounts for *_, amounts in shown)
    assert sum(first) == pytest.approx(0.3)
    # what was there already, and the rest
    assert (second[0], sum(second)) == (pytest.approx(0.3), pytest.approx(1.024))


def test_a_download_that_breaks_off_continues_where_it_was(server):
    server.breaks = [400_000, 100_000]
    assert download(RemoteFile(server.address())).read_bytes() == CONTENT
    assert [wanted for _, wanted, _ in server.asked] == [None, "bytes=400000-", "bytes=500000-"]


@pytest.fixture
def begin(server, monkeypatch):
    """Let a process get only the beginning of the file."""

    def get(size):
        server.breaks = [size]
        with monkeypatch.context() as patch:
            patch.setattr(downloading, "PAUSES", ())
            with pytest.raises(SynmtError, match="the connection broke"):
                download(RemoteFile(server.address()))
        return RemoteFile(server.address())

    return get


def test_what_a_killed_process_has_left_is_continued(server, begin):
    file = begin(300_000)
    assert bytes_to_fetch(file) == len(CONTENT) - 300_000
    assert download(file).read_bytes() == CONTENT
    assert server.asked[-1] == ("GET", "bytes=300000-", '"one"')
    assert bytes_to_fetch(file) == 0


def test_a_file_that_has_changed_in_between_is_downloaded_from_the_start(server, begin):
    file = begin(400_000)
    server.content, server.version = CONTENT[::-1], '"two"'
    assert download(file).read_bytes() == CONTENT[::-1]
    assert server.asked[-1] == ("GET", "bytes=400000-", '"one"')


def test_a_server_that_names_no_version_sends_the_whole_file_again(server, begin):
    server.version = ""
    file = begin(400_000)
    assert download(file).read_bytes() == CONTENT
    assert [wanted for _, wanted, _ in server.asked] == [None, None]


def test_a_server_without_ranges_that_always_breaks_off_is_given_up(server):
    server.ranges, server.breaks = False, [400_000] * 20
    with pytest.raises(
        SynmtError, match=r"the connection broke after 400,000 of 1,024,000 bytes"
    ) as caught:
        download(RemoteFile(server.address()))
    assert len(server.asked) == 1 + len(downloading.PAUSES)
    assert str(local_path(RemoteFile(server.address()))) in str(caught.value)


def test_a_busy_server_is_asked_again(server):
    server.status = 503
    with pytest.raises(SynmtError, match="the server answers 503 Service Unavailable"):
        download(RemoteFile(server.address()))
    assert len(server.asked) == 1 + len(downloading.PAUSES)


def test_a_slow_server_is_given_up_after_a_while(server, monkeypatch):
    monkeypatch.setattr(downloading, "TIMEOUT", 0.05)
    monkeypatch.setattr(downloading, "PAUSES", ())
    server.pause = 0.4
    with pytest.raises(SynmtError, match="timed out"):
        download(RemoteFile(server.address()))


def test_files_that_cannot_be_downloaded_are_listed_together_with_their_places(server, monkeypatch):
    server.status = 404
    files = [RemoteFile(server.address(name)) for name in ("a/one.tgz", "b/two.tgz")]
    with pytest.raises(SynmtError) as caught:
        download_all(files, "the corpus nc11")
    message = str(caught.value)
    assert "2 files of the corpus nc11 cannot be downloaded" in message
    assert "a/one.tgz: the server answers 404 Not Found" in message
    for file in files:
        assert f"  {file.address}\n    -> {local_path(file)}" in message
    assert len(server.asked) == 1


def test_without_a_network_the_same_list_appears_at_once(server, monkeypatch):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    files = [RemoteFile(server.address(name)) for name in ("a/one.tgz", "b/two.tgz")]
    local_path(files[0]).parent.mkdir(parents=True)
    local_path(files[0]).write_bytes(CONTENT)
    with pytest.raises(
        SynmtError, match=r"1 file cannot be downloaded \(SYNMT_OFFLINE is set\)"
    ) as caught:
        download_all(files)
    assert "one.tgz" not in str(caught.value)
    assert "unset SYNMT_OFFLINE" in str(caught.value)
    assert bytes_to_fetch(files[1]) is None
    assert not server.asked


def test_a_server_that_nobody_reaches_is_no_reason_to_wait(server, monkeypatch):
    monkeypatch.setattr(downloading, "PAUSES", (60.0,))
    server.shutdown()
    server.server_close()
    with pytest.raises(SynmtError, match=r"file\.tgz: Connection refused"):
        download(RemoteFile(server.address()))


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            {"sha256": "0" * 64},
            f"it has SHA-256 {hashlib.sha256(CONTENT).hexdigest()}. Expected: SHA-256 {'0' * 64}",
        ),
        (
            {"md5": "0" * 32},
            f"it has MD5 {hashlib.md5(CONTENT).hexdigest()}. Expected: MD5 {'0' * 32}",
        ),
        ({"size": 5}, "it has 1,024,000 bytes instead of 5"),
    ],
    ids=["sha256", "md5", "size"],
)
def test_a_file_with_another_content_is_refused_and_removed(server, tmp_path, known, message):
    file = RemoteFile(server.address(), **known)
    with pytest.raises(SynmtError) as caught:
        download(file)
    assert message in str(caught.value)
    assert f"the file has changed: {message}" in str(caught.value)
    assert str(local_path(file)) in caught.value.do
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [".file.tgz.lock"]


def test_a_file_put_there_by_hand_is_checked_too(server):
    file = RemoteFile(server.address(), sha256=hashlib.sha256(CONTENT).hexdigest())
    local_path(file).parent.mkdir(parents=True)
    local_path(file).write_bytes(b"something else")
    with pytest.raises(SynmtError, match=r"file\.tgz: the file has changed"):
        download(file)
    assert not server.asked


def test_a_web_page_is_not_taken_for_an_archive(server):
    server.kind = "text/html; charset=utf-8"
    with pytest.raises(SynmtError, match="the address answers with a web page, not with the file"):
        download(RemoteFile(server.address()))
    assert bytes_to_fetch(RemoteFile(server.address())) is None


def test_a_disk_without_room_is_noticed_before_the_download(server, tmp_path, monkeypatch):
    monkeypatch.setattr(
        downloading.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000)
    )
    with pytest.raises(
        SynmtError, match=r"disk is too full: the download needs 0\.0 GB more.*SYNMT_CACHE"
    ):
        download(RemoteFile(server.address()))


def test_two_processes_that_want_one_file_download_it_once(server):
    file = RemoteFile(server.address())
    paths = []
    threads = [threading.Thread(target=lambda: paths.append(download(file))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths == [local_path(file)] * 4
    assert len(server.asked) == 1


def test_a_mirror_has_the_files_of_all_servers(server, monkeypatch):
    file = RemoteFile("https://www.statmt.org/wmt16/dev.tgz", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setenv("SYNMT_MIRROR", server.address("mirror"))
    assert download(file) == local_path(file)
    assert server.paths == ["/mirror/www.statmt.org/wmt16/dev.tgz"]


def test_a_folder_can_be_the_mirror(server, tmp_path, monkeypatch):
    (tmp_path / "my mirror" / "www.statmt.org").mkdir(parents=True)
    (tmp_path / "my mirror" / "www.statmt.org" / "dev.tgz").write_bytes(CONTENT)
    monkeypatch.setenv("SYNMT_MIRROR", str(tmp_path / "my mirror"))
    assert download(RemoteFile("https://www.statmt.org/dev.tgz")).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://a.org/x/../../y/%2e%2e/z.tgz", "a.org/x/y/z.tgz"),
        ("https://a.org/%2Fetc%2Fpasswd", "a.org/etc/passwd"),
        ("https://a.org/c d/e?f", f"a.org/c_d/{fingerprint('f')}-e"),
    ],
)
def test_an_address_never_leads_out_of_the_cache(server, tmp_path, address, place):
    path = local_path(RemoteFile(address)).relative_to(tmp_path / "downloads").as_posix()
    assert path == place
