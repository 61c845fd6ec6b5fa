"""Files of trees: whole or not at all, resumed after any interruption, the same with any number of
workers."""

import gzip
import io
import json
import os
import re

import pytest
from cases import cases
from flat_parser import FlatParser, group_lives, parse_slowly
from flat_parser import parse_with_flat as run
from forked import Forked, let_pools_fork, wait_for
from refusing import assert_fails

from synmt.parsing.bulk import parse_file, parse_stream
from synmt.parsing.parser import StanzaParser
from synmt.parsing.target import read_summary
from synmt.syntax.conllu import read_parses
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey


LINES = [f"line {number % 7} of {number}" for number in range(23)] + [
    "",
    "dup",
    "x\u2028y\x85z",
    "dup",
    "poison",
    " ",
]
LINES += ["dup", "poison", "line 0 of 0", "the end"]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "text.en"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8", newline="\n")
    return path


def assert_refused(message, *arguments, **options):
    assert_fails(message, run, *arguments, **options)


def interrupt(source, target, shards):
    """Parse some shards of four lines each; gives their steps."""
    steps = parse_file(source, target, FlatParser(), shard_lines=4, workers=1)
    done = [next(steps) for _ in range(shards)]
    steps.close()
    return done


def everything(folder, name):
    return {
        path.name.removeprefix(name): path.read_bytes()
        for path in folder.iterdir()
        if path.name.startswith(name)
    }


def test_every_line_has_its_tree_in_its_place(source, tmp_path):
    *steps, last = run(source, tmp_path / "a.conllu")
    assert list(read_parses(tmp_path / "a.conllu", LINES)) == [flat_parse(line) for line in LINES]
    assert ([step.state for step in steps], last.state) == (["parsed"] * 9, "finished")
    assert sum(step.lines for step in steps) == last.lines == len(LINES) == 33
    text = (tmp_path / "a.conllu").read_text(encoding="utf-8")
    assert re.findall(r"^# line = (\d+)$", text, flags=re.MULTILINE) == list(map(str, range(1, 34)))


def test_the_summary_says_what_was_made_from_what(source, tmp_path):
    run(source, tmp_path / "a.conllu")
    summary = read_summary(tmp_path / "a.conllu")
    assert summary.parser == {"backend": "flat", "name": "flat"}
    assert (summary.fingerprint, summary.lines, summary.failures) == ("00000000flat", 33, 2)
    assert summary.words == sum(len(flat_parse(line)) for line in LINES)
    failures = (tmp_path / "a.conllu.failures.jsonl").read_text().splitlines()
    places = [number for number, line in enumerate(LINES, start=1) if line == "poison"]
    assert list(map(json.loads, failures)) == [{"line": n, "reason": "poisoned"} for n in places]
    assert not (tmp_path / "a.conllu.parts").exists()


def test_a_packed_file_has_the_same_trees_and_the_same_bytes_each_time(
    source, tmp_path, monkeypatch
):
    let_pools_fork(monkeypatch)
    run(source, tmp_path / "a.conllu")
    run(source, tmp_path / "a.gz", workers=2)
    run(source, tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    unpacked = gzip.decompress((tmp_path / "a.gz").read_bytes())
    assert unpacked == (tmp_path / "a.conllu").read_bytes()


def test_an_empty_text_has_an_empty_file_of_trees(tmp_path):
    (tmp_path / "text").touch()
    run(tmp_path / "text", tmp_path / "a.gz")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b""
    assert read_summary(tmp_path / "a.gz").lines == 0


def test_an_interrupted_run_continues_and_ends_with_the_same_files(source, tmp_path):
    run(source, tmp_path / "whole")
    assert [step.state for step in interrupt(source, tmp_path / "broken", 3)] == ["parsed"] * 3
    assert not (tmp_path / "broken").exists()
    damaged = tmp_path / "broken.parts" / "000002.conllu"
    damaged.write_text(damaged.read_text()[:-20])
    states = [step.state for step in run(source, tmp_path / "broken")]
    assert sorted(states) == ["finished", "kept", "kept"] + ["parsed"] * 7
    assert everything(tmp_path, "whole") == everything(tmp_path, "broken")


def test_ctrl_c_leaves_the_finished_shards(tmp_path):
    (tmp_path / "text").write_text("a\nb\nstop\n")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "text", tmp_path / "out", shard_lines=1)
    assert sorted(path.name for path in (tmp_path / "out.parts").glob("*.json")) == [
        "000001.json",
        "000002.json",
    ]


def test_a_killed_run_continues_and_ends_with_the_same_files(source, tmp_path):
    run(source, tmp_path / "whole")
    process = Forked(parse_slowly, source, tmp_path / "killed", 2, log=tmp_path / "log")
    wait_for(lambda: len(list((tmp_path / "killed.parts").glob("*.json"))) >= 2)
    process.kill()
    process.wait()
    # the workers end after their parent
    wait_for(lambda: not group_lives(process.pid))
    assert not (tmp_path / "killed").exists()
    states = [step.state for step in run(source, tmp_path / "killed")]
    assert "kept" in states
    assert everything(tmp_path, "whole") == everything(tmp_path, "killed")


def test_a_worker_that_is_killed_is_a_message(tmp_path):
    (tmp_path / "text").write_text("a\nb\nkill\nc\n")
    assert_refused(
        r"worker process was killed.*--workers 1",
        tmp_path / "text",
        tmp_path / "out",
        shard_lines=1,
        workers=2,
    )


def test_a_kill_between_trees_and_summary_is_repaired(source, tmp_path):
    run(source, tmp_path / "whole")
    interrupt(source, tmp_path / "cut", 9)
    (tmp_path / "cut").write_text("half")
    run(source, tmp_path / "cut")
    assert everything(tmp_path, "whole") == everything(tmp_path, "cut")


def test_a_finished_file_is_not_made_again(source, tmp_path):
    run(source, tmp_path / "a")
    parser = FlatParser()
    [step] = run(source, tmp_path / "a", parser)
    assert (step.state, step.lines, step.failures) == ("unchanged", 33, 2)
    assert parser.asked == []


def test_a_file_of_another_parser_another_text_or_another_program_is_overwritten_on_request_only(
    source, tmp_path
):
    target, other = tmp_path / "a", FlatParser("other")
    run(source, target)
    assert_refused(r"a: was made from.*another parser.*--overwrite", source, target, other)
    run(source, target, other, overwrite=True)
    assert read_summary(target).parser["name"] == "other"
    source.write_text("something else\n")
    assert_refused(r"was made from another text", source, target, other)
    run(source, target, other, overwrite=True)
    assert not (tmp_path / "a.failures.jsonl").exists()
    target.write_text("changed")
    assert_refused(r"or was changed later\..* or remove it, as", source, target, other)
    (tmp_path / "mine").write_text("precious")
    assert_refused(r"is not a finished file of `synmt parse`", source, tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "precious"


def test_shards_of_two_parsers_are_never_mixed(source, tmp_path):
    interrupt(source, tmp_path / "a", 1)
    other = FlatParser("other")
    assert "kept" not in [step.state for step in run(source, tmp_path / "a", other)]


def test_a_parser_that_finished_no_shard_does_not_block_another_one(tmp_path):
    (tmp_path / "text").write_text("stop\n")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "text", tmp_path / "a")
    (tmp_path / "text").write_text("go\n")
    assert run(tmp_path / "text", tmp_path / "a", FlatParser("other"))[-1].state == "finished"


REFUSED = r"""
text.en => input and output are the same file
pipe => pipe: the output is not a file.*redirect standard output
taken => the output is not a file\. Name a file
/proc/none/out => cannot write
"""


@pytest.mark.parametrize(("output", "message"), cases(REFUSED))
def test_an_output_that_cannot_be_written_is_refused_before_any_work(
    source, tmp_path, output, message
):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "taken").mkdir()
    assert_refused(message, source, tmp_path / output, overwrite=True)
    assert not list(tmp_path.glob("*.parts"))


def test_two_runs_at_once_on_one_file_are_refused(source, tmp_path):
    steps = parse_file(source, tmp_path / "a", FlatParser(), shard_lines=4, workers=1)
    next(steps)
    assert_refused(r"another process is writing", source, tmp_path / "a")
    assert list(steps)[-1].state == "finished"


def test_what_is_not_of_synmt_stays_where_the_summary_and_the_shards_would_be(source, tmp_path):
    (tmp_path / "a.json").write_text("{}")
    assert_refused(
        r"a\.json: exists, and is not a finished file.*--overwrite", source, tmp_path / "a"
    )
    (tmp_path / "b.parts").mkdir()
    (tmp_path / "b.parts" / "000001").write_text("mine")
    for overwrite in (False, True):
        message = r"b\.parts: exists, and `synmt parse` did not make it. Choose another output"
        assert_refused(message, source, tmp_path / "b", overwrite=overwrite)
    assert (tmp_path / "b.parts" / "000001").read_text() == "mine"
    run(source, tmp_path / "a", overwrite=True)
    assert read_summary(tmp_path / "a").lines == 33


def test_the_shards_of_a_run_that_was_killed_at_its_start_are_no_obstacle(source, tmp_path):
    (tmp_path / "a.parts").mkdir()
    for name in ("lock", ".parser.x1"):
        (tmp_path / "a.parts" / name).touch()
    assert run(source, tmp_path / "a")[-1].state == "finished"


def test_a_text_that_is_not_utf8_is_named_by_line_and_finished_shards_stay(tmp_path):
    (tmp_path / "text").write_bytes(b"a\nb\nc\nd\n\xff\n")
    assert_refused(r"text: line 5 is not UTF-8", tmp_path / "text", tmp_path / "out", shard_lines=1)
    assert (tmp_path / "out.parts" / "000002.json").exists()
    assert not (tmp_path / "out").exists()


def test_a_stream_gives_the_first_tree_before_the_last_line_comes():
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as feed:
        feed.write(b"first line\nhalf")
        blocks = parse_stream(stream, FlatParser())
        assert next(blocks).startswith("# line = 1\n# text = first line\n1\tfirst\t")
        feed.write(b" line\n\nlast")
        assert "# line = 2\n# text = half line\n" in next(blocks)
        feed.close()
        assert "# line = 4\n# text = last\n" in next(blocks)
        assert list(blocks) == []


def test_a_stream_names_failures_and_bytes_that_are_not_utf8_by_the_number_of_the_line(caplog):
    list(parse_stream(io.BufferedReader(io.BytesIO(b"a\npoison\n")), FlatParser()))
    assert caplog.messages == [
        "line 2 could not be parsed in one piece; using a flat or joined tree: poisoned"
    ]
    assert_fails(
        r"standard input: line 2 is not UTF-8",
        list,
        parse_stream(io.BufferedReader(io.BytesIO(b"a\n\xff\n")), FlatParser()),
    )


def test_the_processes_of_a_parser_follow_the_chosen_threads(monkeypatch):
    monkeypatch.setenv("SYNMT_THREADS", "3")
    assert StanzaParser("en", device="cpu").processes() == 3
    assert StanzaParser("en", device="cuda:1").processes() == 1
