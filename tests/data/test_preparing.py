"""The prepared corpus: filters, rows and their trees, interruption, reading back, bad input."""

import os
import signal
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
import yaml
from preparing import (
    CHAIN,
    PAIRS,
    VALID,
    annotated,
    corpus_of,
    prepared,
    recipe_of,
    rows_of,
    tree_of,
    trees_for,
)
from refusing import assert_fails, assert_refused
from tiny import snapshot

from synmt.data import encoding, filtering
from synmt.data.annotate import annotate
from synmt.data.corpus import PreparedCorpus, is_complete
from synmt.data.filtering import REASONS, judge_pairs
from synmt.data.prepare import check_lengths, prepare, prepared_folder
from synmt.data.summary import corpus_table
from synmt.files.reading import stored_sha256
from synmt.recipe.data import FilterRecipe
from synmt.reporting.text import shown_rows
from synmt.syntax.conllu import format_conllu


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(encoding, "SHARD_LINES", 4)


@pytest.fixture
def corpus(tmp_path):
    return corpus_of(tmp_path / "text")


# filters


def reasons(pairs, *, lines=0, **filters):
    with tempfile.TemporaryDirectory() as name:
        files = corpus_of(Path(name), pairs).train
        recipe, languages = FilterRecipe(**filters), ("en", "de")
        codes = judge_pairs(files, recipe, languages, lines=lines, where=Path(name))
    return [REASONS[code] for code in codes]


JUDGED = """
kkekkkkkek {}
kkekkwkkek {max_words: 5}
kkekkkkkek {max_words: 0}
wwekwwkkew {max_words: 4}
kkekkkkkek {max_ratio: 10.0}
kkekkrkkek {max_ratio: 9.9}
kkekdkkkek {duplicates: true}
kkekkkkkek {max_punctuation: 0.0}
"""


@pytest.mark.parametrize("judged", JUDGED.split("\n")[1:-1])
def test_a_pair_is_dropped_for_its_first_reason(judged):
    expected, filters = judged.split(" ", 1)
    found = reasons(PAIRS, **yaml.safe_load(filters))
    assert "".join(reason.removeprefix("too long (")[0] for reason in found) == expected


# an apostrophe alone is punctuation, and so is a dollar; a word that has a letter is none
SHARES = """
0.2 the monkey , it eats
0.5 monkey .
0.375 the monkey 's banana $ 2 ' .
1 « ¿ — … 。 ، ， ++ <>
0 e-mail a.b 3.14 x- -x
"""


@pytest.mark.parametrize("line", SHARES.split("\n")[1:-1])
def test_a_source_with_a_larger_share_of_punctuation_is_dropped(line):
    share, source = line.split(" ", 1)
    for most in (0.0, 0.1, 0.25, 0.5, 0.75):
        expected = "punctuation" if float(share) > most else "kept"
        assert reasons([(source, "Der Affe .")], max_punctuation=most) == [expected]
    # the target is not looked at, and 1 does not look at the source either
    assert reasons([("The monkey", source)], max_punctuation=0.1) == ["kept"]
    assert reasons([(source, "Der Affe .")]) == ["kept"]


def test_the_numbers_of_the_reasons_stay_as_they_are_stored():
    assert REASONS[6:] == ("too long (pieces)", "punctuation")


def test_a_filter_that_is_not_used_leaves_the_name_of_a_prepared_corpus_as_it_was():
    before = (
        '{"max_words":250,"max_pieces":512,"max_ratio":0.0,"duplicates":false,"language":false}'
    )
    assert FilterRecipe().identity() == before
    assert '"max_punctuation":0.25' in FilterRecipe(max_punctuation=0.25).identity()
    assert FilterRecipe.model_validate_json(before) == FilterRecipe()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.journey)])
def test_duplicates_are_found_across_chunks_and_processes_as_by_a_set(monkeypatch, workers):
    monkeypatch.setattr(filtering, "_FEW", 500 // workers)
    monkeypatch.setattr(filtering, "_CHUNK", 7)
    monkeypatch.setattr(filtering, "process_count", lambda chunks: workers)
    random = np.random.default_rng(3)
    pairs = [(str(a), str(b)) for a, b in random.integers(0, 12, (500, 2))]
    seen: set[tuple[str, str]] = set()
    expected = []
    for pair in pairs:
        expected.append("duplicate" if pair in seen else "kept")
        seen.add(pair)
    assert reasons(pairs, lines=500, duplicates=True) == expected


@pytest.mark.journey
def test_a_pair_in_a_wrong_language_is_dropped():
    english = "The government has decided to build a new school in this town."
    german = "Die Regierung hat beschlossen, in dieser Stadt eine neue Schule zu bauen."
    found = reasons([*product((english, german), repeat=2)], language=True)
    assert found == ["language", "kept", "language", "language"]


def test_a_language_that_cannot_be_told_is_refused(corpus):
    recipe = FilterRecipe(language=True)
    assert_refused(
        "does not know the language tlh",
        judge_pairs,
        corpus.train,
        recipe,
        ("en", "tlh"),
        lines=10,
        where=Path(),
    )


# rows


def test_rows_come_in_the_order_asked_for_across_shards(tmp_path, small_shards):
    split = prepared(tmp_path).split("train")
    assert [row.line for row in split.rows(np.array([7, 0, 3, 3]))] == [9, 0, 4, 4]
    assert split.rows([]) == []
    lengths = [[len(row.source) + 1, len(row.target) + 1] for row in rows_of(split)]
    assert split.lengths().tolist() == lengths


def test_validation_keeps_every_pair_that_has_a_loss(tmp_path):
    data = prepared(tmp_path, filters={"max_words": 10, "max_ratio": 1.1, "max_pieces": 3})
    first, last = rows_of(data.split("valid"))
    assert (first.line, last.line) == (0, 2)
    assert max(len(first.source), len(last.source)) == 3
    assert first.source.tolist() == data.vocabularies[0].encode_ids(VALID[0][0])[:3]
    assert data.facts["splits"]["valid"]["cut"] >= 1


def test_training_pairs_with_too_many_pieces_are_dropped_and_counted(tmp_path):
    longest = prepared(tmp_path / "all").split("train").lengths().max(1) - 1
    limit = int(np.median(longest))
    data = prepared(tmp_path / "short", filters={"max_pieces": limit})
    counts, dropped = data.facts["splits"]["train"]["reasons"], (longest > limit).sum()
    assert counts["too long (pieces)"] == dropped > 0
    assert counts["kept"] == len(data.split("train")) == len(longest) - dropped


def test_a_line_that_normalises_to_nothing_counts_as_empty(tmp_path):
    texts = [*PAIRS, ("\u200b", "Nichts.")], [*VALID, ("a", "\u200b")]
    splits = prepared(tmp_path, corpus_of(tmp_path / "text", *texts)).facts["splits"]
    assert [splits[name]["reasons"]["empty"] for name in ("train", "valid")] == [3, 2]


def test_counts_add_up(tmp_path, small_shards):
    data = prepared(tmp_path, filters={"duplicates": True, "max_words": 9})
    train = data.facts["splits"]["train"]
    assert train["lines"] == len(PAIRS) == sum(train["reasons"].values())
    counted = {"kept": 6, "empty": 2, "too long (words)": 1, "duplicate": 1}
    assert train["reasons"] == dict.fromkeys(REASONS, 0) | counted
    # words between blanks of lines 0, 1, 3, 6, 7, 9; U+2028 is a blank
    assert train["words"] == [5 + 5 + 1 + 3 + 2 + 5] * 2
    assert train["shards"] == 3


def test_the_folder_does_not_say_where_or_when_it_was_made(tmp_path):
    made = [snapshot(prepared(tmp_path / name).folder) for name in ("here", "there/deeper")]
    assert made[0] == made[1]
    assert str(tmp_path).encode() not in b"".join(made[0].values())


# trees


def test_trees_stand_beside_their_rows(tmp_path, small_shards):
    data, name = annotated(tmp_path)
    assert data.annotations()[name]["relations"]["train"].keys() == {"next", "root"}
    rows = rows_of(data.split("train", {"source": name}))
    for row in rows:
        expected, tree = tree_of(PAIRS[row.line][0]), row.trees["source"]
        assert len(tree.word_of) == len(row.source)
        assert set(tree.word_of) == set(range(len(tree.parse)))
        if len(tree.parse) == len(expected):
            read = replace(tree.parse, words=expected.words, spans=expected.spans)
            assert read == expected
    first, words = rows[0], [""] * 6
    pieces = data.vocabularies[0].pieces(first.source)
    for piece, word in zip(pieces, first.trees["source"].word_of, strict=True):
        words[word] += piece.strip("▁")
    assert words == tree_of(PAIRS[0][0]).words


def test_trees_of_a_truncated_side_have_no_words_after_its_end(tmp_path):
    vocabulary = {"size": 600, "kind": "word"}
    data, name = annotated(tmp_path, filters={"max_pieces": 3}, vocabulary=vocabulary)
    tree = data.split("valid", {"source": name}).rows([0])[0].trees["source"]
    # "The girl eats." is three words between blanks; the full stop shares the last one
    assert tree.word_of.tolist() == [0, 1, 2]
    assert tree.parse.parents.tolist() == [0, 0, 1]


def test_what_is_counted_of_trees(tmp_path):
    # don | ' | t | a and the invisible character as its own word
    text = [("don't a\u200b", "x")]
    data, name = annotated(tmp_path, text, text, vocabulary={"kind": "word"})
    counts = "{words: 5, pieces: 2, merged: 3}"
    assert data.annotations()[name]["counts"]["train"] == yaml.safe_load(counts)


def test_the_table_shows_every_number(tmp_path, corpus):
    data = prepared(tmp_path, corpus, filters={"duplicates": True})
    annotate(data.folder, corpus, trees_for(corpus, tmp_path), parser=CHAIN)
    [name] = data.annotations()
    table = {row[0]: row[1:] for row in shown_rows(corpus_table(data, [name]))}
    assert "dropped: ratio" not in table
    split = data.facts["splits"]["train"]
    per_word = split["pieces"][0] / split["words"][0]
    assert table["source (en): pieces per word"][0] == f"{per_word:.2f}"
    for row in SHOWN.strip().splitlines():
        title, *values = map(str.strip, row.split("|"))
        assert table[title] == values, title


SHOWN = """
lines | 10 | 3
kept | 7 | 2
dropped: empty | 2 | 1
dropped: duplicate | 1 | 0
"""


# again, interrupted, changed


def killed(moment, folder):
    """Prepare a corpus in a copy of this process that kills itself before a file takes its name;
    return how it ended."""
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    left, end = [os.replace] * moment, partial(os.kill, os.getpid(), signal.SIGKILL)
    os.replace = lambda *names: left.pop()(*names) if left else end()
    try:
        annotated(folder)
    finally:
        os._exit(1)


@pytest.mark.journey
def test_a_run_that_is_killed_before_any_file_takes_its_name_ends_as_one_that_is_not(
    tmp_path, small_shards
):
    whole = snapshot(annotated(tmp_path / "whole")[0].folder)
    # kept, vocabulary, 3 + 1 shards, checksums, corpus; 3 + 1 shards of trees, checksums,
    # annotation
    assert sum(not name.endswith("lock") for name in whole) == 14
    for moment in range(14):
        folder = tmp_path / f"killed-{moment}"
        assert killed(moment, folder) == signal.SIGKILL
        assert snapshot(folder / "prepared") != whole
        assert snapshot(annotated(folder)[0].folder) == whole


def test_a_finished_corpus_is_not_made_again(tmp_path, corpus, reported):
    data = prepared(tmp_path, corpus)
    jobs = ["prepare: filter", "prepare: vocabulary", "prepare: train", "prepare: valid"]
    assert [job[0] for job in reported] == jobs
    assert all(sum(done) == total for _, total, _, *done in reported)
    reported.clear()
    before = snapshot(data.folder)
    prepare(recipe_of(), corpus, data.folder)
    assert (snapshot(data.folder), reported) == (before, [])


def test_the_folder_changes_with_text_filters_and_vocabulary_only(tmp_path, corpus):
    def name(corpus=corpus, **sections):
        return prepared_folder(tmp_path, recipe_of(**sections), corpus).name

    assert name().startswith("text-en-de-")
    assert name(training={"max_steps": 3}, name="other") == name()
    other = corpus_of(tmp_path / "other" / "text", train=PAIRS[:3])
    changed = [name(filters={"max_words": 9}), name(vocabulary={"size": 9}), name(other)]
    assert name() not in changed


def test_the_hash_of_a_large_file_is_remembered_until_it_changes(tmp_path, monkeypatch):
    monkeypatch.setattr("synmt.files.reading._LARGE", 3)
    path = tmp_path / "large"
    path.write_text("1234")
    first = stored_sha256(path)
    monkeypatch.setattr("synmt.files.reading.sha256", lambda _, **how: "read again")
    assert stored_sha256(path) == first
    path.write_text("12345")
    assert stored_sha256(path) == "read again"


# bad input


BAD_TEXTS = r"""
- files: {train.de: "nur eine\n", valid.en: "one\ntwo\n"}
  said: 'train\.en has 10 lines, .*train\.de has 1\b'
- {files: {train.en: "good\ncaf\xe9\n\n\n\n\n\n\n\n\n"}, said: 'train\.en: line 2 is not UTF-8'}
- files: {train.en: "\xff\xfe\n\x01\n\0"}
  said: 'train\.en: this is UTF-16, .* Convert it with `iconv -f utf-16'
- {filters: {max_pieces: 1}, said: 'no pair of the training text is kept .*too long \(pieces\): 8'}
- files: {train.en: "\na b c\n", train.de: "x\nx\n"}
  filters: {max_words: 2}
  said: "no pair of .* is kept .*empty: 1, too long .words.: 1.*or relax the recipe's `filters`"
- {files: {train.en: "", train.de: ""}, said: 'train\.en: no pair .*it has no lines'}
- {files: {valid.en: "\n", valid.de: "x\n"}, said: no line of the validation text}
"""


@pytest.mark.parametrize("case", yaml.safe_load(BAD_TEXTS), ids=itemgetter("said"))
def test_a_text_that_cannot_be_prepared_is_refused(tmp_path, corpus, case):
    for name, content in case.get("files", {}).items():
        (tmp_path / "text" / name).write_bytes(content.encode("latin1"))
    assert_fails(f"(?s){case['said']}", prepared, tmp_path, corpus, filters=case.get("filters", {}))
    assert not is_complete(tmp_path / "prepared")


BROKEN = r"""
corpus.json         - prepared: not a complete prepared corpus
corpus.json         {"format":9} not a complete prepared corpus in format 2
train-00000.arrow   "" train-00000\.arrow: not a complete file
train-00000.arrow   ARROW1 train-00000\.arrow: .*Restore the folder from a copy
train-00000.arrow   - train-00000\.arrow
other               "" parse-source-123.train-00000\.arrow: not a complete file
"""


@pytest.mark.parametrize("case", BROKEN.strip().splitlines())
def test_a_prepared_corpus_that_is_broken_or_lacks_trees_is_named(tmp_path, case):
    name, content, message = case.split(maxsplit=2)
    path = prepared(tmp_path).folder / name
    path.unlink() if content == "-" else path.write_text(content.strip('"'))
    trees = {"source": "parse-source-123"} if name == "other" else {}
    assert_fails(message, lambda: PreparedCorpus.open(path.parent).split("train", trees))


def test_an_empty_test_set_is_told_before_training(tmp_path):
    corpus = corpus_of(tmp_path, PAIRS, [])
    assert_fails(
        r"valid\.en: the test set has no lines\. Fill both",
        check_lengths,
        {"train": corpus.train, "challenge": corpus.valid},
    )


@pytest.mark.parametrize("many", [True, False])
def test_trees_for_other_lines_are_refused_each_time(tmp_path, corpus, many, small_shards):
    data, parses = prepared(tmp_path, corpus), trees_for(corpus, tmp_path)
    whole = parses["train"].read_text()
    more = whole + format_conllu(tree_of("One more."), "One more.", 99)
    parses["train"].write_text(more if many else whole[: whole.rindex("# line")])
    for _ in range(2):
        assert_fails(r"train\.trees\.conllu", annotate, data.folder, corpus, parses, parser={})
    assert data.annotations() == {}


def test_text_that_changed_after_it_was_prepared_is_refused(tmp_path, corpus):
    data, corpus = prepared(tmp_path, corpus), corpus_of(tmp_path / "text", PAIRS[::-1])
    assert_fails(
        "text has changed since it was prepared",
        annotate,
        data.folder,
        corpus,
        trees_for(corpus, tmp_path),
        parser={},
    )


def test_two_processes_do_not_write_the_same_corpus(tmp_path, corpus, monkeypatch):
    write = partial(prepare, recipe_of(), corpus, tmp_path / "prepared")
    refused = []

    @contextmanager
    def second(*job):
        if not refused:
            refused.append(job)
            assert_fails("another process is writing this corpus", write)
        yield lambda amount: None

    monkeypatch.setattr("synmt.reporting.progress._display", second)
    write()
    assert refused
    assert is_complete(tmp_path / "prepared")
