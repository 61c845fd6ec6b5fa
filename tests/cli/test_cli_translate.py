"""`synmt translate`: text and JSON lines, prefixes, samples, alignments, other trees, mistakes."""

import gzip
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import threading
from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace

import pytest
from forked import Piped
from small_run import PASCAL, TEXT, flat_conllu, make_run
from tiny import fail, lines_of, succeed, synmt, write_lines

from synmt.cli import console

pytestmark = pytest.mark.journey

LINES = [TEXT[0], "", "A dog \u2028 sees.", TEXT[1]]
RECORDS = [{"source": line} for line in LINES]
INPUT = "".join(f"{line}\n" for line in LINES)
OUTPUT = ["translation", "score", "log_probability", "dropped", "degenerate"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Make a plain run, the newer one, a PASCAL run, and flat trees of the lines."""
    folder = tmp_path_factory.mktemp("project")
    make_run(folder / "runs/pascal", PASCAL)
    plain = make_run(folder / "runs/plain", parser=False, max_pieces=40)
    plain.write_info(finished_at="2026-01-02T00:00:00+00:00")
    (folder / "flat").write_text(flat_conllu(LINES))
    return folder


@pytest.fixture
def run(project):
    """Translate text with options as they are typed."""

    def translate(options, text=INPUT):
        return succeed("translate", *shlex.split(options), text=text, cwd=project)

    return translate


@pytest.fixture
def output(run):
    return lambda *given, **more: lines_of(run(*given, **more))


@pytest.fixture
def objects(output):
    def translate(options, records):
        text = "".join(json.dumps(record) + "\n" for record in records)
        return list(map(json.loads, output(f"--jsonl {options}", text)))

    return translate


def warnings_in(errors):
    """Leave out the line about degenerate output: translations by random weights often loop."""
    return [line for line in errors.decode().splitlines() if not line.startswith("degenerate")]


def test_without_arguments_the_newest_run_translates_standard_input(run):
    done = run("")
    assert warnings_in(done.stderr) == ["run: runs/plain"]
    assert [bool(line) for line in lines_of(done)] == [True, False, True, True]
    for options in ("--run runs/plain", "runs/plain", "--run runs/plain -o -"):
        assert run(options).stdout == done.stdout
    assert run("", text=INPUT[:-1]).stdout == done.stdout
    assert run("", text="").stdout == b""


def test_a_file_is_translated_into_a_file(run, tmp_path):
    (tmp_path / "in.gz").write_bytes(gzip.compress(INPUT.encode()))
    files = f"{tmp_path}/in.gz -o {tmp_path}/out.gz --alignments {tmp_path}/pairs"
    assert run(f"{files} --run runs/plain").stdout == b""
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == run("").stdout
    assert {path.name for path in tmp_path.iterdir()} == {"in.gz", "out.gz", "pairs"}


@pytest.mark.parametrize(("output", "shown"), [("", []), ("-o -", []), ("-o out", ["translating"])])
def test_progress_is_shown_on_a_terminal_unless_the_translations_appear_there(
    run, project, monkeypatch, output, shown
):
    jobs, terminal = [], SimpleNamespace(isatty=lambda: True)
    import_module("synmt.cli.translate")
    monkeypatch.setattr("synmt.cli.translate.sys", SimpleNamespace(stdout=terminal))
    monkeypatch.setattr(
        console, "progress", lambda what, *_: jobs.append(what) or nullcontext(lambda amount: None)
    )
    write_lines(project / "in", ["A dog."])
    shown_there = run(f"in {output} --run runs/plain").stdout.decode()
    assert jobs == shown
    assert (shown_there or (project / "out").read_text()).count("\n") == 1


def test_n_best_lists_have_the_format_of_moses_and_scores_follow_a_tab(output):
    best, scored = output(""), output("--scores")
    rows = [line.split(" ||| ") for line in output("--n-best 3")]
    assert "".join(row[0] for row in rows) == "0001222333"
    assert rows[0][1] == best[0]
    assert rows[3][1:] == ["", "0.0000"]
    scores = [float(row[2]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)
    assert scored[:2] == [f"{best[0]}\t{rows[0][2]}", "\t0.0000"]


def test_the_first_line_comes_out_before_the_last_goes_in(project):
    with Piped("translate", "--run", project / "runs/plain") as process:
        process.stdin.write(f"{TEXT[0]}\n".encode())
        assert select.select([process.stdout], [], [], 60)[0]
        first = process.stdout.readline()
        rest, errors = process.communicate(f"{TEXT[1]}\n".encode())
        assert (process.wait(), warnings_in(errors)) == (0, [])
    assert len(first) > 1
    assert rest.count(b"\n") == 1


def test_named_pipes_are_read_once_and_written_and_stay_pipes(run, tmp_path):
    os.mkfifo(tmp_path / "in")
    os.mkfifo(tmp_path / "out")
    writer = threading.Thread(target=(tmp_path / "in").write_text, args=(INPUT,))
    writer.start()
    reader = subprocess.Popen(["cat", tmp_path / "out"], stdout=subprocess.PIPE)
    run(f"{tmp_path}/in -o {tmp_path}/out --run runs/plain")
    writer.join()
    assert (tmp_path / "out").is_fifo()
    assert reader.communicate()[0] == run("").stdout


def test_a_pascal_run_parses_its_input_or_takes_trees(run, project):
    done, trees = run("--run runs/pascal"), project / "trees"
    assert warnings_in(done.stderr) == []
    succeed("parse", "-o", trees, text=INPUT)
    given = run("--run runs/pascal --parses trees")
    assert (given.stdout, warnings_in(given.stderr)) == (done.stdout, [])


def test_trees_are_stored_for_the_next_run_unless_disabled(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path))
    first = run("--run runs/pascal --no-parse-cache").stdout
    assert not (tmp_path / "parses").exists()
    for _ in range(2):
        assert run("--run runs/pascal").stdout == first
        assert len(list((tmp_path / "parses").glob("*.sqlite"))) == 1


MISTAKES = """
1 | --run nowhere | nowhere: not a run folder
1 | --run runs/pascall | run.json is missing. Did you mean 'runs/pascal'?
1 | --run runs/plain gone.txt | gone.txt: not a run folder
1 | gone.txt | gone.txt: cannot read the file
2 | --checkpoint bset | Did you mean 'best'?
1 | --checkpoint last | the run has no last weights
2 | --beam-size 2 --n-best 3 | --n-best 3 needs a wider beam
2 | --beam-size 0 | --beam-size cannot be 0. Allowed: from 1 up to 10,000
2 | --beam-size x | '--beam-size': Input should be a valid integer
2 | --precision fp16 | Invalid value for '--precision': Value error, 'fp16' is not one of
2 | --device toaster | there is no device 'toaster'
2 | --top-k 3 | --top-k: only with --sample
2 | --sample --top-p 2 | --top-p cannot be 2.0
2 | --parses - | only once, not by INPUT and --parses
2 | --prefixes - | only once, not by INPUT and --prefixes
2 | --parse-override - | only once, not by INPUT and --parse-override
1 | --parses gone.conllu --run runs/pascal | gone.conllu: cannot read
1 | --parses flat --run runs/pascal | flat, sentence 1 (line 1): the tree does not match
2 | --parse-override flat --run runs/plain | the model reads no trees
1 | --prefixes /dev/null | there are 0 prefixes
2 | --jsonl --prefixes x | the field `prefix`
2 | --word-scores | --word-scores: only in objects
2 | --alignments - | Name a file, or add --jsonl
2 | --alignments same -o same | the output would replace the input or another output
2 | --alignments runs/../same -o same | the output would replace the input or another output
2 | --alignments '' | .: the output is a folder
2 | -o runs | runs: the output is a folder
2 | flat -o flat | flat: the output would replace the input
"""


@pytest.mark.parametrize("line", MISTAKES.strip().splitlines())
def test_a_mistake_is_one_clear_message(project, line):
    code, options, message = line.split(" | ")
    before = sorted(project.iterdir())
    assert message in fail(int(code), "translate", *shlex.split(options), text="x\n", cwd=project)
    assert sorted(project.iterdir()) == before


def test_all_mistakes_are_reported_at_once(project):
    mistakes = ["--jsonl", "-o", "runs", "--prefixes", "prefixes", "--alignments", "runs"]
    assert fail(2, "translate", *mistakes, text="x\n", cwd=project).count("\n") == 4


def test_text_that_is_not_utf8_and_a_broken_or_unfinished_run_are_named(tmp_path):
    run = make_run(tmp_path / "runs/one", parser=False)

    def error(*options, text="x\n"):
        return fail(1, "translate", *options, text=text, cwd=tmp_path)

    assert "standard input: line 2 is not UTF-8" in error(text=b"good\nb\xe4d\n")
    run.weights.write_bytes(b"no weights")
    assert "the run folder is broken" in error()
    run.weights.unlink()
    run.write_info(status="training")
    assert "the run has no final weights" in error("--run", run.folder)
    assert "there is no finished run in runs/" in error()


def test_after_an_interruption_the_same_command_translates_only_what_is_missing(project, tmp_path):
    lines = [f"A dog {number}.\n" for number in range(150)]
    text, folder = tmp_path / "text", tmp_path / ".out.windows"
    options = f"--run {project}/runs/plain --batch-size 4 --beam-size 1 --threads 1"

    def command(name):
        return ["translate", text, *options.split(), "-o", *f"{tmp_path}/{name}".split()]

    text.write_bytes("".join(lines).encode() + b"\xff\n")
    fail(1, *command("out"))
    write_lines(text, map(str.strip, lines))
    damaged, *finished = sorted(folder.iterdir())
    assert finished
    damaged.write_bytes(damaged.read_bytes()[:-9])
    # so that one sees what is read again
    for path in finished:
        path.write_text(re.sub(r'"text": "[^"]*"', '"text": "again"', path.read_text()))
    shutil.copytree(folder, tmp_path / ".other.windows")
    for typed in ("fresh", "out", "other --length-penalty 0.3"):
        succeed(*command(typed))
    fresh, out, other = (
        (tmp_path / name).read_text().splitlines() for name in ("fresh", "out", "other")
    )
    assert {mine for mine, theirs in zip(out, fresh, strict=True) if mine != theirs} == {"again"}
    assert len(lines) > out.count("again") >= len(finished)
    assert "again" not in other
    assert {path.name for path in tmp_path.iterdir()} == {"text", "fresh", "out", "other"}


def test_objects_come_out_with_their_other_fields_in_order(output, objects):
    records = [
        {"id": 7, "source": TEXT[0], "z": [1, {"a": None}], "half": "\ud800"},
        {"text": ""},
        {"source": TEXT[1], "text": "is not read", "prefix": None},
    ]
    made = objects("", records)
    assert [list(one) for one in made] == [[*record, *OUTPUT] for record in records]
    assert [one | record for one, record in zip(made, records, strict=True)] == made
    scored = output("--scores", f"{TEXT[0]}\n\n{TEXT[1]}\n")
    assert [f"{one['translation']}\t{one['score']:.4f}" for one in made] == scored
    assert made[1]["degenerate"] is None


def test_fields_come_out_as_they_were_written_and_those_of_the_output_under_another_name(run):
    kept = (
        r'"x": [NaN, 1e400,-0, {"}": 0.10000000000000000001}], "a": 1, "a": 2, "\ud800": '
        r'"\u00e9é", "n": ' + "1" * 5000
    )
    text = f'\t{{ "source" :"A dog.","score":1e400, {kept}, "x_score": 2 }}\r\n'
    first, second = lines_of(run("--jsonl", text + '{"source": "", "score": 3}\n'))
    begin = f'{{"source": "A dog.", "input_score": 1e400, {kept}, "x_score": 2, '
    assert first.startswith(begin + '"translation": "')
    assert second.startswith('{"source": "", "input_score": 3, "translation": "", "score": 0.0, ')


def test_several_translations_of_an_object_are_a_list(objects):
    first, second = objects("--n-best 3", [{"source": TEXT[0]}, {"source": " "}])
    assert [len(one["translations"]) for one in (first, second)] == [3, 1]
    assert first["translations"][0] == {name: first[name] for name in OUTPUT[:3]}
    assert second["translations"][0]["translation"] == ""


INVALID = r"""
{broken | not a JSON object
 | not a JSON object of text (Expecting value: line 1 column 1 (char 0)). Write one object
[1] | not a JSON object of text
{"src": "x"} | `source` field required
{"source": 3} | `source` must be a valid string
{"source": null} | `source` must be a valid string
{"source": "x", "prefix": ["a"]} | `prefix` must be a valid string
{"source": "\ud800"} | surrogates not allowed
{"source": "x", "parse": 3} | `parse` must be a valid string
{"source": "x", "parse": ""} | `parse`: ends before line 1 of the text. There must be one tree
{"source": "x", "parse": "1\tA"} | `parse`, sentence 1 (line 1):
{"source": "x y", "parse": "1\tx\t_\t_\t_\t_\t0\troot\t_\t_"} | does not match the text: word 2
"""


@pytest.mark.parametrize("line", [*INVALID.strip("\n").splitlines(), "[" * 100000 + " | not a"])
def test_an_invalid_object_is_reported_with_its_line(project, line):
    written, message = line.split(" | ")
    good = '{"source": "A dog."}\n'
    options = ("--run", "runs/pascal", "--jsonl", "--no-parse-cache")
    done = synmt("translate", *options, text=f"{good * 2}{written}\n{good}", cwd=project)
    errors = done.stderr.decode()
    assert done.returncode == 1
    assert "standard input: line 3" in errors
    assert message in errors
    assert "Traceback" not in errors


def test_prefixes_come_from_a_file_or_from_the_objects(output, objects, project):
    prefixes = ["Ein Hund", "Der", "", "Ein"]
    write_lines(project / "prefixes", prefixes)
    lines = output("--prefixes prefixes")
    assert lines[0].startswith("Ein Hund")
    assert lines[1] == ""
    assert lines[2] == output("")[2]
    pairs = zip(LINES, prefixes, strict=True)
    made = objects("", [{"source": line, "prefix": prefix} for line, prefix in pairs])
    assert [one["translation"] for one in made] == lines


def test_alignments_are_a_line_for_each_line_and_scores_of_words_in_the_objects(
    output, objects, tmp_path
):
    lines = output(f"--alignments {tmp_path}/pairs")
    assert lines == output("")
    aligned = (tmp_path / "pairs").read_text().split("\n")
    assert [bool(line) for line in aligned] == [True, False, True, True, False]
    first, second = objects("--alignments -", RECORDS[:2])
    assert " ".join(f"{s}-{t}" for s, t in first["alignment"]) == aligned[0]
    for name, line in (("source_words", TEXT[0]), ("target_words", lines[0])):
        assert [line[start:end] for start, end in first[name]] == line.split()
    assert "alignment" not in second
    first, second = objects("--word-scores", RECORDS[:2])
    assert len(first["word_scores"]) == len(lines[0].split())
    total = sum(score for _, score in first["pieces"])
    assert total == pytest.approx(first["log_probability"], abs=1e-4)
    assert "word_scores" not in second


def test_samples_diverse_beams_and_ensembles_translate(output):
    sampled = "--sample --temperature 2 --top-k 50 --top-p 0.95 --seed"
    assert output(f"{sampled} 3") == output(f"{sampled} 3 --batch-size 1") != output(f"{sampled} 4")
    rows = output("--beam-size 4 --n-best 4 --groups 2 --diversity 9")
    assert {row.split(" ||| ")[0] for row in rows} == set("0123")
    both = output("--run runs/plain runs/pascal --no-repeat 3")
    assert [bool(line) for line in both] == [bool(line) for line in LINES]


def test_another_tree_gives_three_columns_or_an_object_and_a_summary(run, output, objects):
    options = "--run runs/pascal --parse-override flat"
    done = run(options)
    own, flat, differences = zip(*(line.split("\t") for line in lines_of(done)), strict=True)
    assert list(own) == output("--run runs/pascal")
    assert list(flat) == output("--run runs/pascal --parses flat")
    assert differences[1] == "0.0000"
    changed = sum(one != other for one, other in zip(own, flat, strict=True))
    assert f"with the other trees, {changed} of 3 translations change" in done.stderr.decode()
    made = objects(f"{options} --n-best 2", RECORDS)
    assert [one["override"]["translation"] for one in made] == list(flat)
    added = [one["override"]["own_log_probability"] - one["log_probability"] for one in made]
    assert added == pytest.approx([float(difference) for difference in differences], abs=1e-3)


def test_an_object_may_contain_its_tree(output, objects, project):
    trees = [tree.rstrip("\n") for tree in (project / "flat").read_text().split("\n\n")]
    pairs = zip(LINES, trees, strict=False)
    records = [{"source": line, "parse": tree} for line, tree in pairs]
    made, flat = objects("--run runs/pascal", records), output("--run runs/pascal --parses flat")
    assert [one["translation"] for one in made] == flat
    assert [one["parse"] for one in made] == trees[: len(LINES)]
    own, records[0]["parse"] = output("--run runs/pascal"), None
    mixed = [one["translation"] for one in objects("--run runs/pascal", records)]
    assert mixed == [own[0], *flat[1:]] != own
    # a file of trees replaces those of the objects
    other = [{**record, "parse": "is not read"} for record in records]
    made = objects("--run runs/pascal --parses flat", other)
    assert [one["translation"] for one in made] == flat
    # a model without trees does not look at it
    assert objects("", [{"source": "A dog.", "parse": 3}])[0]["parse"] == 3


def test_standard_input_is_translated_here_in_spite_of_a_cluster_and_says_so(run):
    done = run("--cluster tcp://127.0.0.1:9", "A dog.\n")
    assert done.stdout.count(b"\n") == 1
    assert b"so this machine translates it\n" in done.stderr
