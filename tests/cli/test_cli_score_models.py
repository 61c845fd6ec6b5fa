"""`synmt score --target` and `--contrast` as a user runs it."""

import json
import re

import pytest
from small_run import PASCAL, TEXT, flat_conllu, make_run
from tiny import fail, lines_of, succeed, write_lines

from synmt.controlled import corpus as controlled
from synmt.decode.pairs import score_pairs
from synmt.decode.translator import Translator

pytestmark = pytest.mark.journey

SOURCES, TARGETS = [TEXT[0], "", TEXT[1]], [TEXT[3], "Ein Hund", TEXT[4]]
PAIRS = "--source source.en --target target.de"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("work")
    make_run(place / "one", parser=False)
    make_run(place / "two", PASCAL, parser=False)
    make_run(place / "short", parser=False, max_pieces=6)
    wrong = [TEXT[3].replace("isst", "essen"), TEXT[4].replace("sieht", "sehen")]
    for name, lines in (
        ("source.en", SOURCES),
        ("target.de", TARGETS),
        ("short.de", TARGETS[:2]),
        ("set/src.en", TEXT[:2]),
        ("set/correct.de", TEXT[3:5]),
        ("set/incorrect.de", wrong),
    ):
        write_lines(place / name, lines)
    (place / "source.conllu").write_text(flat_conllu(SOURCES))
    (place / "set.conllu").write_text(flat_conllu(TEXT[:2]))
    return place


@pytest.fixture
def ask(folder):
    """Run the command as it is typed."""

    def score(options, made=succeed):
        return made("score", *options.split(), "--device", "cpu", cwd=folder)

    return score


def test_each_pair_is_a_line_of_json_in_its_order_and_the_summary_is_of_these(ask, folder):
    done = ask(f"--model one {PAIRS}")
    found = [json.loads(line) for line in lines_of(done)]
    written = [(one["line"], one["source"], one["target"]) for one in found]
    assert written == list(zip((1, 2, 3), SOURCES, TARGETS, strict=True))
    expected = list(score_pairs(Translator.load(folder / "one"), SOURCES, TARGETS))
    for one, pair in zip(found, expected, strict=True):
        assert one["log_probability"] == pytest.approx(pair.log_probability)
        assert (one["pieces"], len(one["tokens"])) == (pair.pieces, pair.pieces)
        assert one["perplexity"] == pytest.approx(pair.perplexity)
    assert found[1]["log_probability"] is found[1]["perplexity"] is None
    assert found[0]["tokens"][-1].keys() == {"text", "start", "end", "log_probability"}
    assert re.search(r"left out: no source, or a truncated target +1\n", done.stderr.decode())
    report = json.loads(ask(f"--model one {PAIRS} --json").stdout)
    assert report["pairs"] == found
    first, *_, last = report["summary"]["rows"]
    nats = found[0]["log_probability"] + found[2]["log_probability"]
    assert (first["number"], last["number"]) == (2, 1)
    assert first["value"] == pytest.approx(nats / 2)


def test_lines_that_are_too_long_are_marked(ask):
    first = json.loads(lines_of(ask(f"--model short {PAIRS}"))[0])
    assert first["dropped"]["source"] > 0


def test_a_model_that_reads_trees_uses_those_of_the_option(ask):
    trees = f"{PAIRS} --parses source.conllu"
    assert len(lines_of(ask(f"--model two {trees}"))) == 3
    done = ask(f"--model two {PAIRS}", lambda *typed, **how: fail(2, *typed, **how))
    assert "--parses FILE.conllu" in done


def test_contrasts_are_counted_by_phenomenon_and_in_total(ask):
    report = json.loads(ask("--model one --contrast set --json").stdout)
    won = sum(pair["models"][0]["won"] for pair in report["pairs"])
    [table] = report["tables"]
    assert [row["group"] for row in table["rows"]] == ["set", "all"]
    for row in table["rows"]:
        assert (row["model"], row["pairs"], row["accuracy"]) == ("one", 2, won / 2)
        assert "difference" not in row


def test_other_models_are_compared_with_the_first(ask):
    options = "--model one two --contrast set --parses set.conllu --samples 200 --seed 1"
    [table] = json.loads(ask(f"{options} --json").stdout)["tables"]
    first, second = table["rows"][-2:]
    assert [row["model"] for row in (first, second)] == ["one", "two"]
    assert second["difference"] == second["accuracy"] - first["accuracy"]
    assert any("200 resamples, seed 1" in note for note in table["notes"])


def test_a_model_of_gold_trees_reads_those_of_the_controlled_corpus(ask, monkeypatch):
    few = controlled.generate(train=0, valid=0, test=28)
    monkeypatch.setattr(controlled, "generate", lambda **_: few)
    shown = lines_of(ask("--model two --contrast controlled"))
    tables = [line.split()[0] for line in shown if re.search(r" pairs +model +accuracy", line)]
    assert tables[:3] == ["phenomenon", "attractors", "split"]


def test_texts_of_different_length_are_refused(ask):
    options = "--model one --source source.en --target short.de"
    error = ask(options, lambda *typed, **how: fail(1, *typed, **how))
    assert "there are 2 targets, and more lines of text" in error
