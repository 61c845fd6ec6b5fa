"""`synmt translate` with JSON lines, prefixes, samples, ensembles, alignments and other trees."""

import json
import os
import subprocess

import pytest
from forked import Piped
from small_run import PASCAL, TEXT, flat_conllu, make_run
from test_cli_translate import synmt
from tiny import fail, lines_of, succeed

from synmt.data.vocabulary import SPECIALS, Words

pytestmark = pytest.mark.journey

LINES = [TEXT[0], "", TEXT[1]]
INPUT = "".join(f"{line}\n" for line in LINES)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project") / "runs"
    make_run(folder / "pascal", PASCAL)
    make_run(folder / "plain", parser=False, max_pieces=40)
    return folder


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "flat.conllu"
    path.write_text(flat_conllu(LINES))
    return path


def output(*arguments, text=INPUT):
    return lines_of(succeed("translate", *arguments, text=text))


def as_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def objects(*arguments, records):
    return [json.loads(line) for line in output("--jsonl", *arguments, text=as_lines(records))]


def test_objects_come_out_with_their_other_fields_in_order(runs):
    records = [
        {"id": 7, "source": TEXT[0], "z": [1, {"a": None}], "half": "\ud800"},
        {"text": ""},
        {"source": TEXT[1], "text": "is not read", "prefix": None},
    ]
    plain = output("--run", runs / "plain", "--scores")
    made = objects("--run", runs / "plain", records=records)
    assert list(made[0]) == [
        *records[0],
        "translation",
        "score",
        "log_probability",
        "dropped",
        "degenerate",
    ]
    assert {name: made[0][name] for name in ("id", "z", "half")} == {
        n: records[0][n] for n in ("id", "z", "half")
    }
    assert [f"{one['translation']}\t{one['score']:.4f}" for one in made] == plain
    assert made[1] | {"text": ""} == made[1]
    assert (made[1]["translation"], made[1]["score"], made[1]["degenerate"]) == ("", 0.0, None)
    assert made[2]["text"] == "is not read"


def test_fields_come_out_as_they_were_written_and_those_of_the_output_under_another_name(runs):
    kept = (
        r'"x": [NaN, 1e400,-0, {"}": 0.10000000000000000001}], "a": 1, "a": 2, "\ud800": '
        r'"\u00e9é", "n": ' + "1" * 5000
    )
    text = f'\t{{ "source" :"A dog.","score":1e400, {kept}, "input_score": 2 }}\r\n{{"source": "", "score": 3}}\n'
    done = succeed("translate", "--jsonl", "--run", runs / "plain", text=text)
    first, second = lines_of(done)
    begin = f'{{"source": "A dog.", "input_input_score": 1e400, {kept}, "input_score": 2, "translation": "'
    assert first.startswith(begin)
    assert second.startswith('{"source": "", "input_score": 3, "translation": "", "score": 0.0, ')


def test_fields_with_the_names_of_output_fields_cause_one_warning(runs):
    records = [{"source": TEXT[0], "score": value, "degenerate": "?"} for value in range(9)]
    done = succeed("translate", "--jsonl", "--run", runs / "plain", text=as_lines(records))
    said = (
        "the input already has `score` and `degenerate`: copied as `input_score` and "
        "`input_degenerate`"
    )
    assert done.stderr.decode().count("warning") == done.stderr.decode().count(said) == 1
    again = succeed("translate", "--jsonl", "--run", runs / "plain", text=done.stdout.decode())
    twice = [json.loads(line) for line in lines_of(again)]
    assert [(one["input_score"], one["input_degenerate"]) for one in twice] == [
        (n, "?") for n in range(9)
    ]


def test_several_translations_of_an_object_are_a_list(runs):
    made = objects(
        "--run", runs / "plain", "--n-best", 3, records=[{"source": TEXT[0]}, {"source": " "}]
    )
    assert [len(one["translations"]) for one in made] == [3, 1]
    assert made[0]["translations"][0] == {
        n: made[0][n] for n in ("translation", "score", "log_probability")
    }
    assert made[1]["translations"][0]["translation"] == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{broken", "line 3: not JSON"),
        ("", "line 3: not JSON (Expecting value, at character 1). Write one object per line"),
        ("[1]", "line 3: not a JSON object"),
        ('{"src": "x"}', "line 3: the field `source` is missing"),
        ('{"source": 3}', "line 3: `source` is not a string"),
        ('{"source": "x", "prefix": ["a"]}', "line 3: `prefix` is not a string"),
        ('{"source": "\\ud800"}', "line 3: `source` has a lone surrogate"),
        ("[" * 100000, "line 3: not JSON"),
    ],
)
def test_an_invalid_object_is_reported_after_the_results_before_it(runs, line, message):
    good = '{"source": "A dog."}\n'
    done = synmt("--run", runs / "plain", "--jsonl", text=good * 2 + line + "\n" + good)
    assert done.returncode == 1
    assert done.stdout.count(b"\n") == 2
    assert f"standard input: {message}" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_objects_stream(runs):
    with Piped("translate", "--run", runs / "plain", "--jsonl", "--alignments", "-") as process:
        process.stdin.write(b'{"source": "A dog."}\n')
        first = json.loads(process.stdout.readline())
        rest, _ = process.communicate(b'{"source": "A cat."}\n')
        assert process.wait() == 0
    assert first["alignment"]
    assert rest.count(b"\n") == 1


def test_prefixes_come_from_a_file_or_from_the_objects(runs, tmp_path):
    prefixes = ["Ein Hund", "Der", ""]
    (tmp_path / "prefixes").write_text("".join(f"{prefix}\n" for prefix in prefixes))
    lines = output("--run", runs / "plain", "--prefixes", tmp_path / "prefixes")
    assert lines[0].startswith("Ein Hund")
    assert lines[1] == ""
    assert lines[2] == output("--run", runs / "plain")[2]
    records = [
        {"source": line, "prefix": prefix} for line, prefix in zip(LINES, prefixes, strict=True)
    ]
    assert [
        one["translation"] for one in objects("--run", runs / "plain", records=records)
    ] == lines


@pytest.mark.parametrize(("count", "message"), [(2, "there are 2 prefixes"), (4, "more prefixes")])
def test_there_must_be_one_prefix_per_line(runs, tmp_path, count, message):
    (tmp_path / "prefixes").write_text("Ein\n" * count)
    given = ("--prefixes", tmp_path / "prefixes")
    done = synmt("--run", runs / "plain", *given, text=INPUT)
    assert (done.returncode, message in done.stderr.decode()) == (1, True)


def test_alignments_are_a_line_for_each_line(runs, tmp_path):
    lines = output("--run", runs / "plain", "--alignments", tmp_path / "a")
    assert lines == output("--run", runs / "plain")
    aligned = (tmp_path / "a").read_text().split("\n")
    assert [bool(line) for line in aligned] == [True, False, True, False]
    made = objects(
        "--run", runs / "plain", "--alignments", "-", records=[{"source": line} for line in LINES]
    )
    assert " ".join(f"{s}-{t}" for s, t in made[0]["alignment"]) == aligned[0]
    assert [TEXT[0][start:end] for start, end in made[0]["source_words"]] == TEXT[0].split()
    assert [lines[0][start:end] for start, end in made[0]["target_words"]] == lines[0].split()
    assert "alignment" not in made[1]


def test_samples_are_the_same_for_the_same_seed(runs):
    options = (
        "--run",
        runs / "plain",
        "--sample",
        "--temperature",
        2,
        "--top-k",
        50,
        "--top-p",
        0.95,
    )
    assert output(*options, "--seed", 3) == output(*options, "--seed", 3, "--batch-size", 1)
    assert output(*options, "--seed", 3) != output(*options, "--seed", 4)


def test_diverse_beams_and_ensembles_translate(runs):
    listed = output(
        "--run", runs / "plain", "--beam-size", 4, "--n-best", 4, "--groups", 2, "--diversity", 9
    )
    assert {row.split(" ||| ")[0] for row in listed} == {"0", "1", "2"}
    both = output("--run", runs / "plain", runs / "pascal", "--no-repeat", 3)
    assert [bool(line) for line in both] == [True, False, True]


def test_another_tree_gives_three_columns_and_a_summary(runs, flat):
    done = succeed("translate", "--run", runs / "pascal", "--parse-override", flat, text=INPUT)
    rows = [line.split("\t") for line in lines_of(done)]
    assert [row[0] for row in rows] == output("--run", runs / "pascal")
    assert [row[1] for row in rows] == output("--run", runs / "pascal", "--parses", flat)
    assert rows[1] == ["", "", "0.0000"]
    changed = sum(row[0] != row[1] for row in rows)
    assert f"with the other trees, {changed} of 2 translations change" in done.stderr.decode()
    given = output("--run", runs / "pascal", "--parses", flat, "--parse-override", flat)
    assert all(float(line.split("\t")[2]) == pytest.approx(0, abs=1e-3) for line in given)


def test_a_translation_under_another_tree_is_an_object_in_the_object(runs, flat):
    records = [{"source": line} for line in LINES]
    made = objects(
        "--run", runs / "pascal", "--parse-override", flat, "--n-best", 2, records=records
    )
    rows = [line.split("\t") for line in output("--run", runs / "pascal", "--parse-override", flat)]
    for one, (own, other, difference) in zip(made, rows, strict=True):
        assert (one["translation"], one["override"]["translation"]) == (own, other)
        added = one["override"]["own_log_probability"] - one["log_probability"]
        assert added == pytest.approx(float(difference), abs=1e-3)


def test_an_object_may_contain_its_tree(runs, flat):
    texts = [block.rstrip("\n") for block in flat.read_text().split("\n\n")][: len(LINES)]
    records = [{"source": line, "parse": tree} for line, tree in zip(LINES, texts, strict=True)]
    made = objects("--run", runs / "pascal", records=records)
    assert [one["translation"] for one in made] == output(
        "--run", runs / "pascal", "--parses", flat
    )
    assert [one["parse"] for one in made] == texts
    own = output("--run", runs / "pascal")
    records[0]["parse"] = None
    mixed = [one["translation"] for one in objects("--run", runs / "pascal", records=records)]
    assert mixed == [own[0], *output("--run", runs / "pascal", "--parses", flat)[1:]] != own
    both = ("--run", runs / "pascal", "--jsonl", "--parses", flat)
    assert "--parses: an object has a `parse` already" in fail(
        2, "translate", *both, text=as_lines(records)
    )
    # a model without trees does not look at it
    assert (
        objects("--run", runs / "plain", records=[{"source": "A dog.", "parse": 3}])[0]["parse"]
        == 3
    )


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (3, "line 2: `parse` is not a string. Allowed: a string or null."),
        ("", "line 2, `parse`: has 0 sentences in CoNLL-U. There must be one tree for each line."),
        ("1\tA", "line 2, `parse`, sentence 1, line 1: columns: 2"),
        (
            "1\tA\t_\t_\t_\t_\t0\troot\t_\t_",
            "does not match the text of the line after its last token",
        ),
    ],
)
def test_an_invalid_tree_is_reported_with_its_object(runs, tree, message):
    records = [{"source": "A dog."}, {"source": "A dog.", "parse": tree}]
    done = synmt("--run", runs / "pascal", "--jsonl", text=as_lines(records))
    assert done.returncode == 1
    assert message in done.stderr.decode()
    assert done.stdout.count(b"\n") == 1


def test_a_pipe_is_written_and_stays_a_pipe(runs, tmp_path):
    # a folder that was only taken for a run stays the user's
    synmt("--run", tmp_path, text=INPUT)
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    synmt("--run", runs / "plain", "-o", tmp_path / "pipe", text=INPUT)
    assert (tmp_path / "pipe").is_fifo()
    assert reader.communicate()[0].decode().split("\n")[:-1] == output(
        "--run", runs / "plain", "-o", "-"
    )


@pytest.mark.parametrize("facts", ["{", "[]", '{"parser": 3}'])
def test_an_unrelated_file_next_to_the_trees_is_not_an_error(runs, flat, tmp_path, facts):
    (tmp_path / "t.conllu").write_bytes(flat.read_bytes())
    (tmp_path / "t.conllu.json").write_text(facts)
    done = succeed(
        "translate", "--run", runs / "pascal", "--parses", tmp_path / "t.conllu", text=INPUT
    )
    assert b"t.conllu.json does not say which parser made the trees" in done.stderr


def test_trees_are_stored_for_the_next_run_unless_disabled(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    first = output("--run", runs / "pascal", "--no-parse-cache")
    assert not (tmp_path / "cache" / "parses").exists()
    assert output("--run", runs / "pascal") == first
    assert len(list((tmp_path / "cache" / "parses").glob("*.sqlite"))) == 1
    assert output("--run", runs / "pascal") == first


def test_unknown_text_is_reported_once(tmp_path):
    run = make_run(tmp_path / "words", parser=False).folder
    (run / "source.model").unlink()
    Words([f"w{number}" for number in range(340 - len(SPECIALS))]).save(run, "source")
    done = succeed("translate", "--run", run, text="w1 цат\nцат sees w2\n")
    assert "3 pieces are not in the source vocabulary: 'цат', 'sees';" in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--top-k", "3"], "--top-k: only with --sample"),
        (["--diversity", "1"], "Add --groups 2 or more"),
        (
            ["--groups", "3", "--beam-size", "4"],
            "a beam of 4 cannot be divided into 3 equal groups",
        ),
        (["--sample", "--top-p", "2"], "--top-p cannot be 2.0"),
        (["--sample", "--groups", "2"], "sampling has no beam to divide into groups"),
        (["--sample", "--beam-size", "3"], "with --sample, --beam-size has no effect"),
        (["--length-penalty", "1000"], "--length-penalty cannot be 1000.0"),
        (["--beam-size", "1000000000000"], "--beam-size cannot be 1000000000000"),
        (
            ["--alignments", "runs/../same", "-o", "same"],
            "the alignments would replace the translations",
        ),
        (["-o", "runs"], "--output: 'runs' is a folder"),
        (["--alignments", ""], "--alignments: '.' is a folder"),
        (["--jsonl", "--scores"], "every object has its scores anyway"),
        (["--jsonl", "--prefixes", "x"], "the field `prefix`"),
        (["--alignments", "-"], "Name a file, or add --jsonl"),
        (["--alignments", "same", "-o", "same"], "the alignments would replace the translations"),
        (["--prefixes", "-"], "INPUT and --prefixes: standard input can be read only once"),
        (
            ["--parse-override", "-"],
            "INPUT and --parse-override: standard input can be read only once",
        ),
        (["--parse-override", "x.conllu", "--scores"], "Add --jsonl"),
        (["--parse-override", "x.conllu", "--run", "runs/plain"], "the model reads no trees"),
    ],
)
def test_options_that_do_not_fit_together_give_one_clear_message(runs, arguments, message):
    assert message in fail(2, "translate", *arguments, text="x\n", cwd=runs.parent)


def test_a_file_named_like_standard_input_changes_nothing(runs, tmp_path):
    (tmp_path / "-").write_text("")
    done = succeed("translate", "--run", runs / "plain", text="A dog.\nA cat.\n", cwd=tmp_path)
    assert done.stdout.count(b"\n") == 2


def test_an_output_replaces_a_link_to_itself(runs, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    succeed("translate", "--run", runs / "plain", "-o", tmp_path / "loop", text="A dog.\n")
    assert (tmp_path / "loop").read_text().count("\n") == 1


def test_standard_input_is_translated_here_in_spite_of_a_cluster_and_says_so(runs):
    done = succeed(
        "translate", "--run", runs / "plain", "--cluster", "tcp://127.0.0.1:9", text="A dog.\n"
    )
    assert done.stdout.count(b"\n") == 1
    assert (
        b"standard input may come line by line, so this machine translates it, not the cluster\n"
        in done.stderr
    )


def test_all_mistakes_are_reported_at_once(runs):
    mistakes = ("--jsonl", "--scores", "--checkpoint", "bset", "--prefixes", "-")
    assert fail(2, "translate", *mistakes, text="x\n", cwd=runs.parent).count("\n") == 4


def test_the_help_page_has_a_panel_for_each_kind_of_option():
    shown = synmt("--help").stdout.decode()
    places = [
        shown.index(f"─ {panel} ─")
        for panel in ("Options", "Search", "Sampling", "Trees", "Input and output")
    ]
    assert places == sorted(places)
