"""Downloads from a local server: continued where they broke off, checked, and refused with what to
do."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from cases import cases
from corpus_server import Fault, come_online, serving

from synmt.corpora import download
from synmt.corpora.download import RemoteFile, download_all, local_path
from synmt.errors import SynmtError
from synmt.files.reading import fingerprint

pytestmark = pytest.mark.journey

CONTENT = bytes(range(256)) * 4000
"""A million bytes, of which every part is different enough to notice a wrong order."""
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "a/file.tgz"


@pytest.fixture
def server(tmp_path, monkeypatch):
    come_online(monkeypatch, tmp_path)
    with serving({NAME: CONTENT}) as running:
        yield running


@pytest.fixture
def file(server):
    return RemoteFile(f"{server.address}/{NAME}")


def get(file):
    return download_all([file])[0].read_bytes()


def refusal(*files):
    with pytest.raises(SynmtError) as caught:
        download_all(files)
    return str(caught.value)


def test_a_file_is_downloaded_once_into_a_folder_of_its_server(server, file, tmp_path):
    known = RemoteFile(file.address, SHA256, len(CONTENT))
    host = server.address.removeprefix("http://").replace(":", "_")
    assert local_path(known) == tmp_path / "downloads" / host / NAME
    assert get(known) == get(known) == CONTENT
    assert server.requests[NAME] == 1
    names = {other.name for other in local_path(known).parent.iterdir()}
    assert names == {".file.tgz.lock", "file.tgz"}


def test_progress_is_reported_in_megabytes(server, file, reported):
    server.faults[NAME] = Fault(breaks=1)
    get(file)
    first, second = reported
    assert first[:3] == second[:3] == ["download file.tgz", 1.024, "MB"]
    # what was there already, and the rest
    sums = sum(first[3:]), second[3], sum(second[3:])
    assert sums == pytest.approx((0.512, 0.512, 1.024))


def test_a_download_that_breaks_off_continues_where_it_was(server, file):
    server.faults[NAME] = Fault(breaks=2)
    assert get(file) == CONTENT
    assert server.ranges == ["bytes=512000-", "bytes=768000-"]


@pytest.fixture
def begin(server, file, monkeypatch):
    """Make a process get only the first half of the file."""

    def begin_with(**fault):
        server.faults[NAME] = Fault(breaks=1, **fault)
        with monkeypatch.context() as patch:
            patch.setattr(download, "PAUSES", ())
            assert "the connection broke" in refusal(file)

    return begin_with


def test_what_a_killed_process_has_left_is_continued(server, file, begin):
    begin()
    assert get(file) == CONTENT
    assert server.ranges == ["bytes=512000-"]


def test_a_file_that_has_changed_in_between_is_downloaded_from_the_start(server, file, begin):
    begin()
    server.files[NAME] = CONTENT[::-1]
    assert get(file) == CONTENT[::-1]
    assert server.ranges == ["bytes=512000-"]


def test_a_server_that_names_no_version_sends_the_whole_file_again(server, file, begin):
    begin(no_version=True)
    assert get(file) == CONTENT
    assert (server.requests[NAME], server.ranges) == (2, [])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(breaks=20, no_ranges=True), "connection broke after 512,000 of 1,024,000 bytes"),
        (Fault(status=503), "the server answers 503 Service Unavailable"),
    ],
    ids=["it always breaks off", "it is busy"],
)
def test_a_server_is_given_up_after_some_attempts(server, file, fault, message):
    server.faults[NAME] = fault
    found = refusal(file)
    assert message in found
    assert str(local_path(file)) in found
    assert server.requests[NAME] == 1 + len(download.PAUSES)


def test_a_slow_server_is_given_up_after_a_while(server, file, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    monkeypatch.setattr(download, "PAUSES", ())
    server.faults[NAME] = Fault(pause=0.4)
    assert "timed out" in refusal(file)


def test_files_that_cannot_be_downloaded_are_listed_together_with_their_places(server, monkeypatch):
    files = [RemoteFile(f"{server.address}/{name}") for name in ("a/one.tgz", "b/two.tgz")]
    message = refusal(*files)
    assert "2 file(s) cannot be downloaded" in message
    assert "a/one.tgz: the server answers 404 Not Found" in message
    for file in files:
        assert f"  {file.address}\n    -> {local_path(file)}" in message
    assert server.requests.total() == 1
    # without a network, the list of what is missing appears at once
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    local_path(files[0]).write_bytes(CONTENT)
    message = refusal(*files)
    assert "1 file(s) cannot be downloaded (SYNMT_OFFLINE is set)" in message
    assert "one.tgz" not in message
    assert server.requests.total() == 1


def test_a_server_that_nobody_reaches_is_no_reason_to_wait(server, monkeypatch):
    monkeypatch.setattr(download, "PAUSES", (60.0,))
    assert "Connection refused" in refusal(RemoteFile("http://127.0.0.1:9/file.tgz"))


CHANGED = f"""
sha256 => {"0" * 64} => SHA-256 is {SHA256}, not {"0" * 64}
md5 => {"0" * 32} => MD5 is {hashlib.md5(CONTENT).hexdigest()}, not {"0" * 32}
size => 5 => size is 1024000, not 5
"""


@pytest.mark.parametrize(("kind", "value", "message"), cases(CHANGED))
def test_a_file_with_another_content_is_refused_and_removed(file, tmp_path, kind, value, message):
    file = RemoteFile(file.address, **{kind: int(value) if kind == "size" else value})
    found = refusal(file)
    assert f"the file has changed: its {message}" in found
    assert str(local_path(file)) in found
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [".file.tgz.lock"]


def test_a_file_put_there_by_hand_is_checked_too(server, file):
    file = RemoteFile(file.address, SHA256)
    local_path(file).parent.mkdir(parents=True)
    local_path(file).write_bytes(b"something else")
    assert "file.tgz: the file has changed" in refusal(file)
    assert not server.requests


def test_processes_that_want_one_file_download_it_once(server, file):
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(get, [file] * 4)) == [CONTENT] * 4
    assert server.requests[NAME] == 1


@pytest.mark.parametrize("kind", ["server", "folder"])
def test_a_mirror_has_the_files_of_all_servers(server, tmp_path, monkeypatch, kind):
    name, folder = "www.statmt.org/wmt16/dev.tgz", tmp_path / "my mirror"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_bytes(CONTENT)
    server.files = {name: CONTENT}
    monkeypatch.setenv("SYNMT_MIRROR", {"server": server.address, "folder": str(folder)}[kind])
    assert get(RemoteFile(f"https://{name}", SHA256)) == CONTENT


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
