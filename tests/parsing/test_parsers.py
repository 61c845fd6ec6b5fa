"""Parsing with the shipped model: one tree per line, whichever lines are in the same batch."""

import json
import pickle
import shutil
from itertools import chain

import numpy as np
import pytest
import yaml
from refusing import assert_fails
from small import is_tree
from tiny import write_lines

from synmt.errors import SynmtError, is_out_of_memory
from synmt.files.reading import read_lines
from synmt.parsing import lines as stanza_lines
from synmt.parsing import models as stanza_models
from synmt.parsing import pipeline as stanza_pipeline
from synmt.parsing.arcs import best_tree
from synmt.parsing.lines import LONGEST, batches
from synmt.parsing.parser import StanzaParser
from synmt.parsing.stanza_internals import isolated

pytestmark = pytest.mark.journey

LINES = [
    "The monkey eats a banana.",
    "The boy next to the girls orders a long book that nobody in the old house has read.",
    "I don't know. She does!",
    "Stop",
    'He said: "it\'s 3.5% of $1,000" (see www.example.org).',
]


@pytest.fixture(scope="module")
def parser():
    return StanzaParser("en", device="cpu")


def with_failures(parser, lines):
    """Parse lines and collect the failures."""
    failures = []
    return parser.parse(lines, on_failure=lambda *failure: failures.append(failure)), failures


def assert_is_a_tree(parse, line):
    assert [line[start:end] for start, end in parse.spans] == parse.words
    assert [word for word, parent in enumerate(parse.parents) if word == parent] == [
        parse.relations.index("root")
    ]
    assert is_tree(parse.parents)
    assert len(parse.relations) == len(parse.tags) == len(parse.words)


def test_a_line_alone_equals_the_line_among_others_in_any_order(parser):
    alone = [parser.parse([line])[0] for line in LINES]
    assert parser.parse(LINES) == alone
    assert parser.parse(LINES[::-1]) == alone[::-1]
    assert StanzaParser("en", device="cpu", batch_words=1).parse(LINES) == alone


@pytest.mark.parametrize(
    "line",
    [
        "Two dogs\u2028run\x85in\x0bthe\rpark\twith \x1c a \x00 ball.",
        "  Leading and trailing blanks.  ",
        "A sentence. Another one? A third!",
        "שלום עולם, this is mixed.",
        "An emoji 👩‍👩‍👧 here 🙂.",
        "a\u200bb \ufeffc",
        "-",
        "don't can't won't gonna",
        "<b>&quot;tags&quot;</b> &amp; http://a.b/c?d=e#f",
    ],
)
def test_one_line_gives_one_tree_on_its_own_characters(parser, line):
    [parse], failures = with_failures(parser, [line])
    assert_is_a_tree(parse, line)
    assert not failures
    neighbours = parser.parse(["Before it.", line, "After it."])
    assert neighbours[1] == parse
    assert [len(neighbours[0]), len(neighbours[2])] == [3, 3]


def test_lines_of_whitespace_have_no_words(parser):
    lines = ["", "   ", "\t\u2028\x85", "\x00\x07", "a"]
    assert list(map(len, parser.parse(lines))) == [0, 0, 0, 0, 1]
    assert parser.parse([]) == []


def test_equal_lines_are_parsed_once(monkeypatch):
    asked = []
    parser = StanzaParser("en", device="cpu")
    monkeypatch.setattr(parser, "_run", lambda batch: asked.extend(batch) or fakes(batch))
    parses = parser.parse(["a", "b", "a", "", "a"])
    assert sorted(asked) == ["a", "b"]
    assert [parse.words for parse in parses] == [["a"], ["b"], ["a"], [], ["a"]]


def fakes(batch):
    return [(stanza_lines.flat_parse(line), "") for line in batch]


def test_a_line_of_1300_words_is_one_tree_joined_from_parts_and_reported(parser):
    line = " ".join(["The monkey eats bananas"] * 325)
    parses, failures = with_failures(parser, ["A dog.", line])
    assert len(parses[1]) == 1300
    assert_is_a_tree(parses[1], line)
    assert parses[1].relations.count("parataxis") >= 1300 // LONGEST - 1
    assert failures == [(1, f"split into 4 parts of at most {LONGEST} words")]


def test_a_long_run_without_whitespace_gets_a_flat_tree_and_a_reason(parser):
    [parse], failures = with_failures(parser, ["x" * 100_000 + " end"])
    assert parse.parents.tolist() == [0, 0]
    assert parse.relations == ["root", "dep"]
    assert failures == [(0, "1,000 or more characters without whitespace")]


@pytest.mark.parametrize(
    "error", [MemoryError("none left"), RuntimeError("CUDA out of memory"), ValueError("odd")]
)
def test_a_failing_batch_is_halved_until_one_line_is_left_and_that_one_is_flat(monkeypatch, error):
    sizes = []

    def analyse(batch):
        sizes.append(len(batch))
        if "poison line" in batch:
            raise error
        return fakes(batch)

    parser = StanzaParser("en", device="cpu")
    monkeypatch.setattr(parser, "_run", analyse)
    lines = ["a", "b", "poison line", "c", "poison line"]
    parses, failures = with_failures(parser, lines)
    assert [parse.words for parse in parses] == list(map(str.split, lines))
    assert sizes[0] == 4
    assert [index for index, _ in failures] == [2, 4]
    assert str(error) in failures[0][1]


@pytest.mark.parametrize("reason", ["device lost", "could not create a primitive"])
def test_a_parser_that_fails_on_every_line_stops(monkeypatch, reason):
    def analyse(batch):
        raise RuntimeError(reason)

    parser = StanzaParser("en", device="cpu")
    monkeypatch.setattr(parser, "_run", analyse)
    with pytest.raises(SynmtError, match=f"fails on every line.*{reason}") as raised:
        parser.parse([f"line {number}" for number in range(20)])
    assert is_out_of_memory(raised.value) == (reason != "device lost")


def test_a_ctrl_c_that_became_another_exception_is_not_a_failure_of_the_line(monkeypatch):
    def analyse(batch):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    parser = StanzaParser("en", device="cpu")
    monkeypatch.setattr(parser, "_run", analyse)
    with pytest.raises(KeyboardInterrupt):
        parser.parse(["a"])


def test_parsing_leaves_threads_and_random_numbers_as_they_were():
    import torch

    threads, before = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(2)
    try:
        StanzaParser("en", device="cpu").parse(LINES)
        assert torch.equal(torch.random.get_rng_state(), before)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_batches_have_lines_of_similar_length_and_long_lines_are_alone():
    lines = ["a b c"] * 4 + ["a " * 600, "one"]
    found = list(batches(lines, 6))
    assert sorted(chain.from_iterable(found)) == sorted(lines)
    assert ["a " * 600] in found
    assert all(len(batch) == 1 or len(" ".join(batch).split()) <= 6 for batch in found)


def test_the_faster_search_finds_the_best_tree_with_one_root():
    from stanza.models.common.chuliu_edmonds import chuliu_edmonds_one_root

    # peaked and flat scores, so that every path is used
    generator = np.random.default_rng(0)
    tables = np.log(generator.dirichlet(np.full(5, 0.7), size=(200, 5))).astype(np.float32)
    for scores in tables:
        before = scores.copy()
        assert best_tree(scores).tolist() == chuliu_edmonds_one_root(scores.copy()).tolist()
        assert np.array_equal(scores, before)


def test_a_line_in_which_stanza_finds_no_word_is_flat_and_reported():
    [(parse, reason)] = stanza_lines.parses_of(["a b"], [])
    assert parse.words == ["a", "b"]
    assert "finds no word" in reason


def test_the_identity_has_the_hashes_of_files_and_does_not_depend_on_their_folder(parser, tmp_path):
    folder = shutil.copytree(stanza_models.COMPACT, tmp_path / "copy")
    identity = StanzaParser("en", model=str(folder), device="cpu").identity
    assert len(parser.fingerprint) == 12
    parts = ("tokenize", "pos", "depparse")
    assert set(parser.identity["files"]) == {f"en/{part}/compact.pt" for part in parts}
    again = StanzaParser.from_identity(json.loads(json.dumps(identity)), device="cpu")
    assert (again.fingerprint, again.model) == (parser.fingerprint, str(folder))
    shutil.rmtree(folder)
    assert_fails(r"copy: Stanza models for 'en' not found", StanzaParser.from_identity, identity)


def test_the_identity_is_that_of_the_loaded_files_and_needs_no_loading(parser, monkeypatch):
    import stanza

    parser.parse(["a"])
    loaded = {value for key, value in parser._pipeline.config.items() if key.endswith("_path")}
    assert loaded == {str(stanza_models.COMPACT / name) for name in parser.identity["files"]}
    monkeypatch.setattr(
        stanza, "Pipeline", lambda *args, **options: pytest.fail("loaded the models")
    )
    assert StanzaParser("en", device="cpu").fingerprint == parser.fingerprint


LISTED = """
german: {alias: de}
de:
  tokenize: {best: {}}
  mwt: {best: {}}
  pos: &model {best: {dependencies: [{model: pretrain, package: words}]}}
  depparse: *model
  packages: {default: {tokenize: best, mwt: best, pos: best, depparse: best, lemma: identity}}
"""
LISTED_FILES = "depparse/best mwt/best pos/best pretrain/words tokenize/best"


def test_the_identity_has_the_files_that_models_of_an_alias_depend_on(tmp_path):
    (tmp_path / "resources.json").write_text(json.dumps(yaml.safe_load(LISTED)))
    names = [f"de/{part}.pt" for part in LISTED_FILES.split()]
    for name in names:
        write_lines(tmp_path / name, ["weights"])
    assert sorted(stanza_pipeline.model_files(tmp_path, "german", "default")) == names
    assert list(StanzaParser("de", model=str(tmp_path)).identity["files"]) == names
    (tmp_path / names[3]).unlink()
    # `best` is the name of some models, but not of a lemmatizer
    for package, message in (
        ("default", r"not found: .*words.pt"),
        ("nosuch", r", de: there is no package 'nosuch'\. Packages: default"),
        ("best", r", de: there is no package 'best'\. Packages: default"),
    ):
        with pytest.raises(SynmtError, match=message):
            _ = StanzaParser("de", model=str(tmp_path), package=package).identity


@pytest.mark.parametrize("version", ["1.14.2", "1.16.0", "1.150", "2.0"])
def test_a_stanza_with_other_internals_is_refused(monkeypatch, version):
    import stanza

    monkeypatch.setattr(stanza, "__version__", version)
    for use in (lambda parser: parser.fingerprint, lambda parser: parser.parse(["a"])):
        assert_fails(
            rf"Stanza {version} is not supported.*Stanza 1\.15.*pip install",
            use,
            StanzaParser("en", device="cpu"),
        )


def test_a_parser_travels_to_another_process_without_its_models(parser):
    parser.parse(["a"])
    sent = pickle.dumps(parser)
    assert len(sent) < 10_000
    assert pickle.loads(sent).parse(LINES[:1]) == parser.parse(LINES[:1])


def test_a_folder_without_a_model_or_with_a_broken_one_is_named(tmp_path):
    folder = shutil.copytree(stanza_models.COMPACT, tmp_path / "broken")
    weights, listed = folder / "en" / "depparse" / "compact.pt", folder / "resources.json"
    for damage, message in (
        (lambda: weights.write_bytes(b"broken"), r"broken: cannot load the Stanza model"),
        (weights.unlink, r"not found: .*compact.pt"),
        (lambda: listed.write_text("{"), r"resources.json: broken: the content: invalid JSON"),
        (listed.unlink, r"broken: Stanza models for 'en' not found.*resources.json"),
    ):
        damage()
        assert_fails(message, lambda: StanzaParser("en", model=str(folder)).parse(["a"]))


def test_trees_are_those_of_a_plain_pipeline_called_line_by_line(parser, data_folder):
    import stanza

    lines = list(read_lines(data_folder / "multi30k" / "val.en.gz"))[:100]
    with isolated():
        options = {"download_method": None, "tokenize_no_ssplit": True, "verbose": False}
        folder = str(stanza_models.COMPACT)
        pipeline = stanza.Pipeline("en", dir=folder, device="cpu", **options)
        documents = [pipeline(line) for line in lines]
    same = []
    for parse, document in zip(parser.parse(lines), documents, strict=True):
        words = [word for sentence in document.sentences for word in sentence.words]
        assert parse.words == [word.text for word in words]
        expected = [index if word.head == 0 else word.head - 1 for index, word in enumerate(words)]
        same += (parse.parents == expected).tolist()
    assert np.mean(same) >= 0.995


def test_an_error_that_is_its_own_cause_has_an_end():
    error = SynmtError("no text")
    error.__cause__ = error
    assert not is_out_of_memory(error)
