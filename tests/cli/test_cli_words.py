"""A system that reads words, from raw text to raw text: trained, translated and scored on tokens
and on text."""

from __future__ import annotations

import json

import pytest
import tiny
from small_run import PASCAL, make_run, small_recipe

from synmt.analysis.trees.report import _as_read
from synmt.analysis.words.grouping import count_file, count_prepared, prepared_text
from synmt.controlled import corpus as controlled
from synmt.decode.translator import Translator
from synmt.evaluation.metrics import MetricOptions
from synmt.evaluation.outputs import from_run
from synmt.files.reading import read_lines
from synmt.parsing.parser import StanzaParser
from synmt.run_folder import Run
from synmt.syntax.conllu import read_parses
from synmt.tokenization.corpus import make_tokenizers

pytest.importorskip("sacremoses")

pytestmark = pytest.mark.journey

TEXT = {"tokenizer": "moses", "truecase": True}
TOKENS = {"on": "tokens", "tokenize": "none", "metrics": ["bleu", "chrf"]}
HARD = [
    'He said, "Don\'t!"',
    "AT&T &amp; Co. | [1] <b>",
    "😀👍🏽 3,000.5 и 今日",
    "",
    "...",
    "See http://a.b/c?d=1.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Train a tiny system on words, whose trees the compact parser makes."""
    folder = tmp_path_factory.mktemp("words")
    for split, examples in controlled.generate(train=40, valid=4, test=4).items():
        for side, language in (("source", "en"), ("target", "de")):
            lines = [getattr(example, side) for example in examples[:40]]
            tiny.write_lines(folder / "corpus" / f"{split}.{language}", lines)
    recipe = tiny.write_recipe(
        folder / "r.yaml",
        folder / "corpus",
        parser={"workers": 1, "device": "cpu"},
        text=TEXT,
        evaluation=TOKENS,
        vocabulary={"kind": "bpe", "size": 320},
    )
    tiny.succeed("train", recipe, cwd=folder)
    return folder


def lines_of(path):
    return list(read_lines(path))


def test_every_tree_of_the_training_text_has_the_words_of_its_line(folder):
    [words] = (
        path for path in folder.glob("data/words/*/train.en") if lines_of(path)[0][0].islower()
    )
    [trees] = folder.glob("data/parses/*train.en*.conllu.gz")
    parses = list(read_parses(trees, read_lines(words)))
    assert len(parses) == 40
    assert [parse.words for parse in parses] == [line.split(" ") for line in lines_of(words)]


def test_a_run_that_starts_from_another_writes_words_in_the_same_case(folder):
    for path in (folder / "corpus").iterdir():
        tiny.write_lines(folder / "other" / path.name, lines_of(path)[:3])
    planned = ("train", "r.yaml", "name=tuned", "model.init=runs/r", "corpus.folder=other")
    tiny.succeed(*planned, cwd=folder)
    for side in ("source", "target"):
        model, taken = (folder / "runs" / run / f"{side}.truecase" for run in ("r", "tuned"))
        assert taken.read_bytes() == model.read_bytes()
    assert not list(folder.glob("data/words/other-*/truecase.model"))
    plan = tiny.lines_of(tiny.succeed(*planned, "name=again", "--dry-run", cwd=folder))
    assert next(step for step in plan if step.startswith("tokenize the text")).endswith(" done")


def test_a_test_set_is_scored_on_tokens_and_says_so(folder):
    test = folder / "runs/r/tests/test"
    assert lines_of(test / "reference.txt") == lines_of(folder / "corpus/test.de")
    assert lines_of(test / "tokens/reference.txt")[0].endswith(" .")
    scores = json.loads((test / "scores.json").read_text())
    assert all(score["signature"].endswith("|on:tokens") for score in scores.values())
    shown = tiny.succeed("score", "runs/r", "--metrics", "bleu", cwd=folder).stdout.decode()
    assert "BLEU on tokens" in shown
    # learned metrics read the source as text
    seed = from_run(folder / "runs" / "r")
    assert (seed.source, seed.raw_source) == (
        lines_of(test / "tokens/source.txt"),
        lines_of(test / "source.txt"),
    )
    assert seed.as_read() == seed
    on_text = tiny.succeed("score", "runs/r", "--on", "text", cwd=folder).stdout
    assert (b"BLEU on" in on_text, b"|tok:13a|" in on_text) == (False, True)
    tokens = "-r", test / "tokens/reference.txt", "--metrics", "bleu"
    given = tiny.succeed("score", "runs/r", *tokens, cwd=folder)
    assert given.stdout.decode().split()[:12] == shown.split()[:12]
    assert "'tokens'" in tiny.fail(2, "score", "runs/r", "--on", "words", cwd=folder)


def test_raw_lines_are_tokenized_and_translations_are_joined_from_the_shell_and_from_python(folder):
    text = "".join(f"{line}\n" for line in HARD)
    command = "translate", "--run", "runs/r"
    shown = tiny.lines_of(tiny.succeed(*command, text=text, cwd=folder))
    tokens = tiny.lines_of(tiny.succeed(*command, "--tokens", text=text, cwd=folder))
    translator = Translator.load(folder / "runs/r", device="cpu")
    found = list(translator.translate(HARD))
    assert [one.text for one in found] == shown
    assert [one.best.tokens or one.text for one in found] == tokens
    assert [translator.tokenizers["target"].join(line) for line in tokens] == shown
    assert (shown[3], tokens[3]) == ("", "")
    stored = lines_of(folder / "runs/r/tests/test/hypothesis.txt")
    assert [one.text for one in translator.translate(lines_of(folder / "corpus/test.en"))] == stored


def test_alignments_and_trees_are_those_of_the_words(folder):
    line = json.dumps({"source": "The dog isn't here."})
    options = ("--jsonl", "--alignments", "-", "--run", "runs/r")
    one = json.loads(tiny.succeed("translate", *options, text=line + "\n", cwd=folder).stdout)
    words = one["source_tokens"]
    assert words.endswith("dog isn 't here .")
    assert [words[start:end] for start, end in one["source_words"]] == words.split()
    target = one["translation_tokens"]
    assert [target[start:end] for start, end in one["target_words"]] == target.split()
    trees = tiny.succeed("parse", "--pretokenized", text=words + "\n", cwd=folder).stdout.decode()
    assert [row.split("\t")[1] for row in trees.splitlines() if row[:1].isdigit()] == words.split()
    given = json.dumps({"source": "The dog isn't here.", "parse": trees})
    again = json.loads(tiny.succeed("translate", *options, text=given + "\n", cwd=folder).stdout)
    assert again["score"] == one["score"]


@pytest.mark.parametrize(("side", "language"), [("source", "en"), ("target", "de")])
def test_words_of_the_training_text_are_counted_as_the_test_set_is_scored(folder, side, language):
    run = Run(folder / "runs/r")
    prepared = prepared_text(run)
    assert prepared is not None
    raw = folder / "corpus" / f"train.{language}"
    cut = folder.glob(f"data/words/corpus-*/train.{language}")
    [words] = (path for path in cut if not path.with_name("truecase.model").exists())
    assert lines_of(words) != lines_of(raw)
    assert count_prepared(run, prepared, side, MetricOptions()) == count_file(raw, MetricOptions())
    tokens = MetricOptions("none", on_tokens=True)
    assert count_prepared(run, prepared, side, tokens) == count_file(words, tokens)


def test_a_model_scores_raw_pairs_by_their_words(folder):
    files = ("--source", "corpus/test.en", "--target", "corpus/test.de")
    rows = tiny.lines_of(tiny.succeed("score", "--model", "runs/r", *files, cwd=folder))
    pairs = [json.loads(row) for row in rows]
    tokens = lines_of(folder / "runs/r/tests/test/tokens/reference.txt")
    assert [pair["target"] for pair in pairs] == tokens


@pytest.mark.parametrize(
    "question", [["--robustness", "--shares", "0.5"], ["--attention"], ["--by-depth"]]
)
def test_analyses_read_the_words_that_the_model_reads(folder, question):
    shown, _ = tiny.analyze("--run", "runs/r", *question, "--json", cwd=folder)
    assert json.loads(shown)


def test_a_treebank_is_read_as_the_words_that_the_model_reads(folder):
    line = "The girls' dog (Rex) didn't bark."
    [parse] = StanzaParser("en").parse([line])
    moses = {"tokenizer": "moses", "lowercase": True}
    for text in ({"tokenizer": "char"}, moses, {"lowercase": True}):
        tokenizer = make_tokenizers(small_recipe(text=text))["source"]
        [read], [found] = _as_read(tokenizer, [(line, parse)])
        assert read == tokenizer.tokenize(line) != line
        assert found.parents.tolist() == parse.parents.tolist()
        words = [read[start:end].replace(" ", "") for start, end in found.spans.tolist()]
        expected = [line[start:end] for start, end in parse.spans.tolist()]
        if "lowercase" in text:
            expected = [word.lower() for word in expected]
        assert (words[:2], words[-2:]) == (expected[:2], expected[-2:])


@pytest.mark.parametrize("side", ["source", "target"])
def test_characters_of_a_run_that_tokenizes_are_those_of_the_text(folder, side):
    asked = "--by-length", "--unit", "characters", "--side", side, "--buckets", "20,30,40", "--json"
    shown, _ = tiny.analyze("--run", "runs/r", *asked, cwd=folder)
    lines = lines_of(folder / "corpus" / f"test.{'en' if side == 'source' else 'de'}")
    short = sum(len(line) <= 20 for line in lines)
    assert json.loads(shown)["tables"][0]["rows"][0]["sentences"] == short


def test_a_run_without_its_case_model_or_tokenized_by_another_version_says_so(
    folder, tmp_path, caplog
):
    run = make_run(tmp_path / "r", text={"tokenizer": "moses"})
    run.write_info(text={"source": {"tokenizer": "moses", "language": "en", "sacremoses": "0.0.1"}})
    assert [one.text for one in Translator.load(run, device="cpu").translate([""])] == [""]
    assert "the source is not tokenized as the training text was" in caplog.text
    cased = make_run(tmp_path / "cased", PASCAL, text=TEXT)
    assert "source.truecase: cannot read the file" in tiny.fail(
        1, "translate", "--run", cased.folder, text="a\n"
    )


def test_runs_that_tokenize_text_in_different_ways_are_no_ensemble(tmp_path):
    options = []
    for name in ("moses", "char"):
        options += ["--run", make_run(tmp_path / name, text={"tokenizer": name}).folder]
    error = tiny.fail(2, "translate", *options, text="a\n")
    assert "tokenization, task or linearised trees differ" in error


def test_text_that_comes_as_words_is_joined_where_text_is_shown(folder, tmp_path):
    """The tokens of the run above are a corpus that its owners have tokenized."""
    for name, language in (("source", "en"), ("reference", "de")):
        words = lines_of(folder / f"runs/r/tests/test/tokens/{name}.txt")
        for split, times in (("train", 8), ("valid", 1), ("test", 1)):
            tiny.write_lines(tmp_path / "corpus" / f"{split}.{language}", words * times)
    recipe = tiny.write_recipe(
        tmp_path / "given.yaml",
        tmp_path / "corpus",
        parser={},
        syntax={},
        text={**TEXT, "already_cut": True},
        training={**tiny.TRAINING, "max_steps": 4},
        evaluation={"metrics": ["bleu"]},
    )
    tiny.succeed("train", recipe, cwd=tmp_path)
    test = tmp_path / "runs/given/tests/test"
    assert lines_of(test / "tokens/source.txt") == lines_of(tmp_path / "corpus/test.en")
    assert lines_of(test / "source.txt") == lines_of(folder / "corpus/test.en")
    assert "on:tokens" not in (test / "scores.json").read_text()
    assert not list((tmp_path / "data/words").rglob("train.*"))
