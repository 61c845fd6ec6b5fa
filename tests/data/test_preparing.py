"""The prepared corpus: filters, rows and their trees, interruption, reading back, bad input."""

import gzip
import json
import pickle
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from places import IMPORTABLE
from tiny import snapshot

from synmt.corpora.resolve import Corpus, resolve
from synmt.data import encoding, filtering
from synmt.data.annotate import annotate, annotation_name, describe_files
from synmt.data.corpus import FORMAT, Example, PreparedCorpus, Split, is_complete
from synmt.data.filtering import REASONS, judge_pairs
from synmt.data.prepare import check_lengths, prepare, prepared_folder
from synmt.data.summary import corpus_table
from synmt.data.vocabulary import SentencePieces
from synmt.errors import SynmtError, UsageError
from synmt.files.reading import stored_sha256
from synmt.recipe.corpus import CorpusRecipe, SplitFiles
from synmt.recipe.data import FilterRecipe
from synmt.recipe.load import check_recipe
from synmt.recipe.schema import Recipe
from synmt.reporting.cells import shown_rows
from synmt.syntax.conllu import format_conllu
from synmt.syntax.parse import Parse

PAIRS = [
    ("The monkey eats a banana.", "Der Affe isst eine Banane."),
    ("The girl sees the monkey.", "Das Mädchen sieht den Affen."),
    ("", "Nichts."),
    ("Bananas!", "Bananen!"),
    ("The monkey eats a banana.", "Der Affe isst eine Banane."),
    ("One two three four five six seven eight nine ten.", "Zehn."),
    ("A girl eats.", "Ein Mädchen isst."),
    ("Zero\u200bwidth \u2028 monkey", "Affe 😀"),
    ("The boy sees a tree.", " "),
    ("The boy sees a tree.", "Der Junge sieht einen Baum."),
]
VALID = [("The girl eats.", "Das Mädchen isst."), ("Monkey.", ""), ("A tree.", "Ein Baum.")]
CHAIN = {"parser": "chain"}


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(encoding, "SHARD_LINES", 4)


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    return corpus_of(tmp_path / "text")


def recipe_of(**sections) -> Recipe:
    corpus = {"name": "small", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    own = {"vocabulary": {"size": 600, "kind": "unigram"}, "model": {"embeddings": "separate"}}
    return check_recipe(corpus | own | sections, where="test")


def corpus_of(folder: Path, train=PAIRS, valid=VALID) -> Corpus:
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in {"train": train, "valid": valid}.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_bytes(text.encode())
    return resolve(CorpusRecipe(folder=folder), "en", "de")


def prepared(tmp_path: Path, corpus: Corpus | None = None, **sections) -> PreparedCorpus:
    folder = tmp_path / "prepared"
    prepare(recipe_of(**sections), corpus or corpus_of(tmp_path / "text"), folder)
    return PreparedCorpus.open(folder)


def tree_of(line: str) -> Parse:
    """Hang every word on the one before it."""
    spans = np.array([match.span() for match in re.finditer(r"\w+|[^\w\s\x07]", line)]).reshape(
        -1, 2
    )
    count = len(spans)
    return Parse(
        words=[line[start:end] for start, end in spans.tolist()],
        spans=spans,
        parents=np.maximum(np.arange(count) - 1, 0),
        relations=["root", *["next"] * (count - 1)][:count],
        tags=["X"] * count,
    )


def trees_for(corpus: Corpus, folder: Path) -> dict[str, Path]:
    paths = {}
    for split in ("train", "valid"):
        lines = corpus.splits()[split].source.read_bytes().decode().split("\n")[:-1]
        paths[split] = folder / f"{split}.trees.conllu"
        blocks = (
            format_conllu(tree_of(line), line, number) for number, line in enumerate(lines, start=1)
        )
        paths[split].write_text("".join(blocks), encoding="utf-8")
    return paths


def annotated(tmp_path: Path, train=PAIRS, valid=VALID, **sections) -> tuple[PreparedCorpus, str]:
    """Prepare a corpus with chains as trees of the source; gives the name of the annotation too."""
    corpus = corpus_of(tmp_path / "text", train, valid)
    data = prepared(tmp_path, corpus, **sections)
    annotate(data.folder, corpus, trees_for(corpus, tmp_path), parser=CHAIN)
    return data, annotation_name("source", CHAIN)


def rows_of(split: Split) -> list[Example]:
    return split.rows(range(len(split)))


# filters


def reasons(pairs, *, lines=0, **filters) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        files = corpus_of(Path(name), pairs).train
        codes = list(
            judge_pairs(files, FilterRecipe(**filters), ("en", "de"), lines=lines, where=Path(name))
        )
    return [REASONS[code] for code in np.concatenate(codes)]


@pytest.mark.journey
def test_several_processes_judge_as_one_does(monkeypatch):
    pairs = [(f"a {number % 7}", "b c" * (number % 5)) for number in range(200)]
    filters = {"duplicates": True, "max_ratio": 2.0}
    expected = reasons(pairs, **filters)
    assert len(set(expected)) == 4
    monkeypatch.setattr(filtering, "_FEW", 0)
    monkeypatch.setattr(filtering, "_CHUNK", 9)
    monkeypatch.setattr(filtering, "process_count", lambda chunks: 2)
    assert reasons(pairs, lines=len(pairs), **filters) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {2: "empty", 8: "empty"}),
        ({"max_words": 5}, {2: "empty", 5: "too long (words)", 8: "empty"}),
        ({"max_words": 0}, {2: "empty", 8: "empty"}),
        (
            {"max_words": 4},
            {i: "too long (words)" for i in (0, 1, 4, 5, 9)} | {2: "empty", 8: "empty"},
        ),
        ({"max_ratio": 10.0}, {2: "empty", 8: "empty"}),
        ({"max_ratio": 9.9}, {2: "empty", 5: "ratio", 8: "empty"}),
        ({"duplicates": True}, {2: "empty", 4: "duplicate", 8: "empty"}),
        ({"max_punctuation": 0.0}, {2: "empty", 8: "empty"}),
    ],
)
def test_a_pair_is_dropped_for_its_first_reason(filters, expected):
    assert reasons(PAIRS, **filters) == [expected.get(index, "kept") for index in range(len(PAIRS))]


@pytest.mark.parametrize(
    ("source", "share"),
    [
        ("the monkey , it eats", 1 / 5),
        ("monkey .", 1 / 2),
        # an apostrophe alone is one, and so is the dollar, a symbol; a word that has a letter is
        # none
        ("the monkey 's banana $ 2 ' .", 3 / 8),
        ("« ¿ — … 。 ، ， ++ <>", 1),
        ("e-mail a.b 3.14 x- -x", 0),
    ],
)
def test_a_source_with_a_larger_share_of_punctuation_is_dropped(source, share):
    for most in (0.0, 0.1, 0.25, 0.5, 0.75):
        expected = "punctuation" if share > most else "kept"
        assert reasons([(source, "Der Affe .")], max_punctuation=most) == [expected]
    # the target is not looked at, and 1 does not look at the source either
    assert reasons([("The monkey", source)], max_punctuation=0.1) == ["kept"]
    assert reasons([(source, "Der Affe .")]) == ["kept"]


def test_the_numbers_of_the_reasons_stay_as_they_are_stored():
    assert REASONS.index("too long (pieces)") == 6
    assert REASONS.index("punctuation") == 7


def test_a_filter_that_is_not_used_leaves_the_name_of_a_prepared_corpus_as_it_was():
    before = (
        '{"max_words":250,"max_pieces":512,"max_ratio":0.0,"duplicates":false,"language":false}'
    )
    assert FilterRecipe().identity() == before
    assert '"max_punctuation":0.25' in FilterRecipe(max_punctuation=0.25).identity()
    assert FilterRecipe.model_validate_json(before) == FilterRecipe()


def test_pairs_with_too_much_punctuation_are_counted(tmp_path):
    corpus = corpus_of(tmp_path / "text", [*PAIRS, (". . a", "x")])
    counts = prepared(tmp_path, corpus, filters={"max_punctuation": 0.25}).facts["splits"]["train"][
        "reasons"
    ]
    assert (counts["punctuation"], sum(counts.values())) == (1, len(PAIRS) + 1)


def test_a_pair_is_a_duplicate_only_when_both_sides_are():
    pairs = [("a", "b"), ("a", "c"), ("b", "b"), ("a b", ""), ("a", "b"), ("ab", "b"), ("a", "c")]
    expected = ["kept", "kept", "kept", "empty", "duplicate", "kept", "duplicate"]
    assert reasons(pairs, duplicates=True) == expected


def test_duplicates_are_found_across_chunks_as_by_a_set(monkeypatch):
    monkeypatch.setattr("synmt.data.filtering._CHUNK", 7)
    random = np.random.default_rng(3)
    pairs = [(str(a), str(b)) for a, b in random.integers(0, 12, (500, 2))]
    seen: set[tuple[str, str]] = set()
    expected = []
    for pair in pairs:
        expected.append("duplicate" if pair in seen else "kept")
        seen.add(pair)
    assert reasons(pairs, duplicates=True) == expected


@pytest.mark.journey
def test_a_pair_in_a_wrong_language_is_dropped():
    english = "The government has decided to build a new school in this town."
    german = "Die Regierung hat beschlossen, in dieser Stadt eine neue Schule zu bauen."
    pairs = [(english, german), (english, english), (german, german), (german, english)]
    assert reasons(pairs, language=True) == ["kept", "language", "language", "language"]


def test_a_language_that_cannot_be_told_is_refused(corpus):
    with pytest.raises(UsageError, match="does not know the language 'tlh'"):
        list(judge_pairs(corpus.train, FilterRecipe(language=True), ("en", "tlh")))


# rows


@pytest.mark.parametrize("kind", ["unigram", "word"])
@pytest.mark.parametrize("joint", [True, False])
def test_rows_are_the_pieces_of_the_kept_lines(tmp_path, small_shards, kind, joint):
    data = prepared(tmp_path, vocabulary={"size": 600, "kind": kind, "joint": joint})
    source, target = data.vocabularies
    assert (source is target) == joint
    rows = rows_of(data.split("train"))
    assert [row.line for row in rows] == [0, 1, 3, 4, 5, 6, 7, 9]
    for row in rows:
        assert row.source.tolist() == source.encode_ids(PAIRS[row.line][0])
        assert row.target.tolist() == target.encode_ids(PAIRS[row.line][1])
        assert row.trees == {}


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_text_with_the_line_ends_of_windows_is_prepared_as_any_other(tmp_path, kind):
    corpus = corpus_of(tmp_path / "text")
    settings = {"size": 330, "kind": kind, "normalization": "identity"}
    prepared(tmp_path / "one", corpus, vocabulary=settings)
    for path in (tmp_path / "text").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    prepared(tmp_path / "other", corpus, vocabulary=settings)
    one, other = (snapshot(tmp_path / name / "prepared") for name in ("one", "other"))
    # one has the hashes of the files, and the other its own hash
    for name in ("corpus.json", "checksums.sha256"):
        assert one.pop(name) != other.pop(name)
    assert one == other


def test_rows_come_in_the_order_asked_for_across_shards(tmp_path, small_shards):
    split = prepared(tmp_path).split("train")
    assert [row.line for row in split.rows(np.array([7, 0, 3, 3]))] == [9, 0, 4, 4]
    assert split.rows([]) == []
    for outside in (8, -1):
        with pytest.raises(IndexError):
            split.rows([outside])


def test_lengths_are_those_of_the_rows(tmp_path, small_shards):
    split = prepared(tmp_path).split("train")
    rows = rows_of(split)
    assert split.lengths().tolist() == [[len(row.source) + 1, len(row.target) + 1] for row in rows]


def test_a_split_can_go_to_another_process(tmp_path, small_shards):
    split = prepared(tmp_path).split("train")
    assert [row.line for row in pickle.loads(pickle.dumps(split)).rows([6, 2])] == [7, 3]


def test_validation_keeps_every_pair_that_has_a_loss(tmp_path):
    data = prepared(tmp_path, filters={"max_words": 10, "max_ratio": 1.1, "max_pieces": 3})
    rows = rows_of(data.split("valid"))
    assert [row.line for row in rows] == [0, 2]
    assert max(len(row.source) for row in rows) == 3
    assert rows[0].source.tolist() == data.vocabularies[0].encode_ids(VALID[0][0])[:3]
    assert data.facts["splits"]["valid"]["cut"] >= 1


def test_training_pairs_with_too_many_pieces_are_dropped_and_counted(tmp_path):
    lengths = prepared(tmp_path / "all").split("train").lengths()
    longest = lengths.max(1) - 1
    limit = int(np.median(longest))
    data = prepared(tmp_path / "short", filters={"max_pieces": limit})
    counts = data.facts["splits"]["train"]["reasons"]
    assert counts["too long (pieces)"] == (longest > limit).sum() > 0
    assert counts["kept"] == len(data.split("train")) == (longest <= limit).sum()


def test_a_line_that_normalises_to_nothing_counts_as_empty(tmp_path):
    corpus = corpus_of(
        tmp_path / "text", train=[*PAIRS, ("\u200b", "Nichts.")], valid=[*VALID, ("a", "\u200b")]
    )
    data = prepared(tmp_path, corpus)
    assert data.facts["splits"]["train"]["reasons"]["empty"] == 3
    assert data.facts["splits"]["valid"]["reasons"]["empty"] == 2


@pytest.mark.parametrize("shards", ["one", "many"])
def test_counts_add_up(tmp_path, shards, request):
    if shards == "many":
        request.getfixturevalue("small_shards")
    train = prepared(tmp_path, filters={"duplicates": True, "max_words": 9}).facts["splits"][
        "train"
    ]
    assert train["lines"] == len(PAIRS) == sum(train["reasons"].values())
    counted = {"kept": 6, "empty": 2, "too long (words)": 1, "duplicate": 1}
    assert train["reasons"] == counted | dict.fromkeys(
        ("ratio", "language", "too long (pieces)", "punctuation"), 0
    )
    # words between blanks of lines 0, 1, 3, 6, 7, 9; U+2028 is a blank
    assert train["words"] == [5 + 5 + 1 + 3 + 2 + 5, 5 + 5 + 1 + 3 + 2 + 5]
    assert train["shards"] == (3 if shards == "many" else 1)


def test_the_folder_does_not_say_where_or_when_it_was_made(tmp_path):
    first = prepared(tmp_path / "here")
    second = prepared(tmp_path / "there" / "deeper", corpus_of(tmp_path / "elsewhere" / "text"))
    assert snapshot(first.folder) == snapshot(second.folder)
    assert str(tmp_path).encode() not in b"".join(snapshot(first.folder).values())


# trees


def test_trees_stand_beside_their_rows(tmp_path, corpus, small_shards):
    data = prepared(tmp_path, corpus)
    parses = trees_for(corpus, tmp_path)
    parser = describe_files(parses)
    annotate(data.folder, corpus, parses, parser=parser)
    name = annotation_name("source", parser)
    assert data.annotations()[name]["relations"]["train"].keys() == {"next", "root"}
    monkey, *others = rows_of(data.split("train", {"source": name}))
    for row in (monkey, *others):
        expected, tree = tree_of(PAIRS[row.line][0]), row.trees["source"]
        assert len(tree.word_of) == len(row.source)
        assert set(tree.word_of.tolist()) == set(range(len(tree.parse)))
        if len(tree.parse) == len(expected):
            assert tree.parse.parents.tolist() == expected.parents.tolist()
            assert (tree.parse.relations, tree.parse.tags) == (expected.relations, expected.tags)
    spelled = [piece.strip("▁") for piece in data.vocabularies[0].pieces(monkey.source)]
    words = [
        "".join(np.array(spelled, dtype=object)[monkey.trees["source"].word_of == word])
        for word in range(6)
    ]
    assert words == ["The", "monkey", "eats", "a", "banana", "."]


def test_trees_of_a_truncated_side_have_no_words_after_its_end(tmp_path):
    data, name = annotated(
        tmp_path, filters={"max_pieces": 3}, vocabulary={"size": 600, "kind": "word"}
    )
    row = data.split("valid", {"source": name}).rows([0])[0]
    # "The girl eats." is three words between blanks; the full stop shares the last one
    assert row.trees["source"].word_of.tolist() == [0, 1, 2]
    assert row.trees["source"].parse.parents.tolist() == [0, 0, 1]


def test_trees_of_the_target_side(tmp_path, corpus):
    data = prepared(tmp_path, corpus)
    backwards = (
        SplitFiles(source=files.target, target=files.source)
        for files in (corpus.train, corpus.valid)
    )
    parses = trees_for(Corpus("x", "de", "en", *backwards, {}), tmp_path)
    annotate(data.folder, corpus, parses, parser=CHAIN, side="target")
    row = data.split("train", {"target": annotation_name("target", CHAIN)}).rows([0])[0]
    assert len(row.trees["target"].word_of) == len(row.target)
    assert len(row.trees["target"].parse) == 6


def test_annotations_of_several_parsers_live_side_by_side(tmp_path, corpus):
    data = prepared(tmp_path, corpus)
    parses = trees_for(corpus, tmp_path)
    before = snapshot(data.folder)
    for parser in ({"parser": "a"}, {"parser": "b"}):
        annotate(data.folder, corpus, parses, parser=parser)
    assert len(data.annotations()) == 2
    assert {
        name: content for name, content in snapshot(data.folder).items() if name in before
    } == before


def test_what_is_counted_of_trees(tmp_path):
    # don | ' | t | a and the invisible character as its own word
    texts = {"train": [("don't a\u200b", "x")], "valid": [("don't", "x")]}
    data, name = annotated(tmp_path, **texts, vocabulary={"kind": "word"})
    counts = data.annotations()[name]["counts"]["train"]
    assert counts == {
        "words": 5,
        "pieces": 2,
        "straddling": 2,
        "characters": 7,
        "unowned": 0,
        "merged": 3,
    }


def test_characters_that_are_in_no_word_have_no_owner(tmp_path):
    text = [("b \x07 a", "x"), ("b a", "y")]
    data, name = annotated(tmp_path, text, text, vocabulary={"kind": "unigram", "size": 300})
    counts = data.annotations()[name]["counts"]["train"]
    assert (counts["unowned"], counts["characters"]) == (1, 5)


def test_the_table_shows_every_number(tmp_path):
    data, name = annotated(tmp_path, filters={"duplicates": True})
    table = {row[0]: row[1:] for row in shown_rows(corpus_table(data, [name]))}
    assert table["lines"] == ["10", "3"]
    assert table["kept"] == ["7", "2"]
    assert table["dropped: empty"] == ["2", "1"]
    assert table["dropped: duplicate"] == ["1", "0"]
    assert "dropped: ratio" not in table
    assert table["joint vocabulary, pieces"] == [f"{len(data.vocabularies[0]):,}", ""]
    split = data.facts["splits"]["train"]
    assert (
        table["source (en): pieces per word"][0] == f"{split['pieces'][0] / split['words'][0]:.2f}"
    )
    assert float(table["source trees: pieces per word of the tree"][0]) >= 1


def test_the_probability_of_the_stored_arcs_is_shown(tmp_path, corpus):
    data, parses = prepared(tmp_path, corpus), trees_for(corpus, tmp_path)
    text = parses["train"].read_text(encoding="utf-8")
    text = re.sub(r"(?m)^(1\t.*\t)", r"\1Arcs=0:root:0.999|", text)
    text = re.sub(r"(?m)^(?!1\t)(\d+\t.*\t)", r"\1Arcs=0:root:0.9999|", text)
    parses["train"].write_text(text, encoding="utf-8")
    annotate(data.folder, corpus, parses, parser=CHAIN)
    [name] = data.annotations()
    trees = [row.trees["source"].parse for row in rows_of(data.split("train", {"source": name}))]
    mean = (0.999 * len(trees) + 0.9999 * sum(len(tree) - 1 for tree in trees)) / sum(
        map(len, trees)
    )
    assert data.annotations()[name]["arc_mass"] == {
        "train": pytest.approx(mean, abs=1e-6),
        "valid": None,
    }
    shown = {row[0]: row[1:] for row in shown_rows(corpus_table(data, [name]))}
    assert shown["source trees: probability that the stored arcs of a word sum to"] == [
        f"{100 * mean:.3f}%",
        "",
    ]


# again, interrupted, changed

_KILLED = """
import os, signal, sys
from pathlib import Path
import test_preparing as own
from synmt.data import encoding
encoding.SHARD_LINES = 4
left = int(sys.argv[2])
replace = os.replace
def replace_or_die(*names):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    replace(*names)
os.replace = replace_or_die
own.annotated(Path(sys.argv[1]))
"""


@pytest.mark.journey
def test_a_run_that_is_killed_before_any_file_takes_its_name_ends_as_one_that_is_not(
    tmp_path, small_shards
):
    whole = snapshot(annotated(tmp_path / "whole")[0].folder)
    names = [name for name in whole if not name.endswith("lock")]
    # kept, vocabulary, 3 + 1 shards, checksums, corpus; 3 + 1 shards of trees, checksums,
    # annotation
    assert len(names) == 14
    for moment in range(len(names)):
        folder = tmp_path / f"killed-{moment}"
        command = [sys.executable, "-c", _KILLED, str(folder), str(moment)]
        killed = subprocess.run(
            command, env={"PYTHONPATH": IMPORTABLE, "PATH": ""}, capture_output=True
        )
        assert killed.returncode == -9, killed.stderr
        assert snapshot(folder / "prepared") != whole
        assert snapshot(annotated(folder)[0].folder) == whole


def test_a_finished_corpus_is_not_made_again(tmp_path, corpus, reported):
    data = prepared(tmp_path, corpus)
    assert [job[0] for job in reported] == [
        f"prepare: {what}" for what in ("filter", "vocabulary", "train", "valid")
    ]
    assert all(sum(done) == total for _, total, _, *done in reported)
    reported.clear()
    before = snapshot(data.folder)
    prepare(recipe_of(), corpus, data.folder)
    assert (snapshot(data.folder), reported) == (before, [])


def test_the_folder_changes_with_text_filters_and_vocabulary_only(tmp_path, corpus):
    name = prepared_folder(tmp_path, recipe_of(), corpus)
    assert name.name.startswith("text-en-de-")
    assert (
        prepared_folder(tmp_path, recipe_of(training={"max_steps": 3}, name="other"), corpus)
        == name
    )
    assert prepared_folder(tmp_path, recipe_of(filters={"max_words": 9}), corpus) != name
    assert prepared_folder(tmp_path, recipe_of(vocabulary={"size": 9}), corpus) != name
    other = corpus_of(tmp_path / "other" / "text", train=PAIRS[:3])
    assert prepared_folder(tmp_path, recipe_of(), other) != name


def test_the_hash_of_a_large_file_is_remembered_until_it_changes(tmp_path, monkeypatch):
    monkeypatch.setattr("synmt.files.reading._LARGE", 3)
    path = tmp_path / "large"
    path.write_text("1234")
    first = stored_sha256(path)
    monkeypatch.setattr("synmt.files.reading.sha256", lambda _: pytest.fail("read again"))
    assert stored_sha256(path) == first
    monkeypatch.undo()
    path.write_text("12345")
    assert stored_sha256(path) != first


# bad input

TOO_LONG = [pair for pair in PAIRS if len(pair[0].split()) in (0, 5, 10)]


def test_sides_of_different_length_are_told_with_both_counts(tmp_path, corpus):
    corpus.train.target.write_text("nur eine\n")
    corpus.valid.source.write_text("one\ntwo\n")
    with pytest.raises(SynmtError) as caught:
        prepare(recipe_of(), corpus, tmp_path / "prepared")
    assert re.search(r"train\.en has 10 lines, .*train\.de has 1\b", str(caught.value))
    assert re.search(r"valid\.en has 2 lines, .*valid\.de has 3\b", str(caught.value))


def test_an_empty_test_set_is_told_before_training(corpus):
    for path in (corpus.valid.source, corpus.valid.target):
        path.write_text("")
    with pytest.raises(SynmtError, match=r"valid\.en: the test set has no lines\. Fill both"):
        check_lengths({"train": corpus.train, "challenge": corpus.valid})


@pytest.mark.parametrize(
    ("texts", "filters", "message"),
    [
        (
            {"train": TOO_LONG},
            {"max_words": 2},
            r"remove the whole .*too long \(words\): 5.*empty: 2",
        ),
        ({}, {"max_pieces": 1}, r"remove the whole .*too long \(pieces\): 8"),
        ({"train": []}, {}, r"train\.en: the training text has no lines"),
        ({"valid": [("", "x")]}, {}, "no line of the validation text"),
    ],
    ids=["no line left", "no piece left", "empty", "validation without words"],
)
def test_a_corpus_of_which_nothing_is_left_says_why(tmp_path, texts, filters, message):
    with pytest.raises(SynmtError, match=message):
        prepared(tmp_path, corpus_of(tmp_path / "text", **texts), filters=filters)
    assert not is_complete(tmp_path / "prepared")


def test_text_that_is_not_utf_8_is_named_by_file_and_line(tmp_path, corpus):
    corpus.train.source.write_bytes(b"good\n" * 8 + b"caf\xe9\n" + b"good\n")
    with pytest.raises(SynmtError, match=r"train\.en: line 9 is not UTF-8"):
        prepare(recipe_of(), corpus, tmp_path / "prepared")


def test_text_in_utf_16_is_named_before_its_number_of_lines(tmp_path, corpus):
    text = corpus.train.source.read_text(encoding="utf-8")
    corpus.train.source.write_text(text + "Ċ\n", encoding="utf-16")
    with pytest.raises(
        SynmtError, match=r"train\.en: this is UTF-16, .* Convert it with `iconv -f utf-16"
    ):
        prepare(recipe_of(), corpus, tmp_path / "prepared")


def test_a_line_of_five_thousand_words_is_dropped(tmp_path):
    long = " ".join(["word"] * 5000)
    data = prepared(
        tmp_path, corpus_of(tmp_path / "text", train=[*PAIRS, (long, "x"), ("x", long)])
    )
    assert data.facts["splits"]["train"]["reasons"]["too long (words)"] == 2


def test_an_unfinished_folder_is_not_opened(tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(SynmtError, match="not a complete prepared corpus"):
            PreparedCorpus.open(folder)


def test_another_format_is_refused(tmp_path):
    data = prepared(tmp_path)
    path = data.folder / "corpus.json"
    path.write_text(json.dumps({**data.facts, "format": 99}))
    with pytest.raises(
        SynmtError, match=f"prepared in format 99. This synmt reads format {FORMAT}"
    ):
        PreparedCorpus.open(data.folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"", ": not a complete file"),
        (b"ARROW1 but no more", ": .*Restore the folder from a copy"),
        (None, ""),
    ],
    ids=["empty", "cut off", "missing"],
)
def test_a_broken_shard_is_named(tmp_path, damage, message):
    data = prepared(tmp_path)
    path = data.folder / "train-00000.arrow"
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    with pytest.raises(SynmtError, match=rf"train-00000\.arrow{message}"):
        data.split("train")


def test_parses_that_are_not_there_are_named(tmp_path):
    with pytest.raises(
        SynmtError, match=r"prepared without the parses parse-source-123\. It has: none"
    ):
        prepared(tmp_path).split("train", {"source": "parse-source-123"})


@pytest.mark.parametrize("change", ["too many", "too few"])
def test_trees_for_other_lines_are_refused_each_time(tmp_path, corpus, change, small_shards):
    data = prepared(tmp_path, corpus)
    parses = trees_for(corpus, tmp_path)
    extra = format_conllu(tree_of("One more."), "One more.", 99)
    whole = parses["train"].read_text()
    parses["train"].write_text(
        whole + extra if change == "too many" else whole[: whole.rindex("# line")]
    )
    for _ in range(2):
        with pytest.raises(SynmtError, match=r"train\.trees\.conllu"):
            annotate(data.folder, corpus, parses, parser={})
    assert data.annotations() == {}


def test_text_that_changed_after_it_was_prepared_is_refused(tmp_path, corpus):
    data = prepared(tmp_path, corpus)
    corpus = corpus_of(
        tmp_path / "text", train=[(f"Now {source}", target) for source, target in PAIRS]
    )
    with pytest.raises(SynmtError, match="the text has changed since it was prepared"):
        annotate(data.folder, corpus, trees_for(corpus, tmp_path), parser={})


def test_two_processes_do_not_write_the_same_corpus(tmp_path, corpus, monkeypatch):
    refused = []

    @contextmanager
    def second(*job):
        if not refused:
            refused.append(job)
            with pytest.raises(SynmtError, match="another process is writing this corpus"):
                prepare(recipe_of(), corpus, tmp_path / "prepared")
        yield lambda amount: None

    monkeypatch.setattr("synmt.reporting.progress._display", second)
    prepare(recipe_of(), corpus, tmp_path / "prepared")
    assert refused
    assert is_complete(tmp_path / "prepared")


# real text


def test_captions_are_prepared_and_read_back(tmp_path, data_folder, monkeypatch):
    monkeypatch.setenv("SYNMT_DATA", str(data_folder))
    corpus = resolve(CorpusRecipe(name="multi30k"), "en", "fr")
    data = prepared(tmp_path, corpus, vocabulary={"size": 8000})
    assert isinstance(data.vocabularies[0], SentencePieces)
    split = data.split("train")
    with gzip.open(corpus.train.source, "rt", encoding="utf-8", newline="\n") as stream:
        lines = stream.read().split("\n")[:-1]
    assert len(split) == len(lines) == 29000
    for row in split.rows(np.random.default_rng(1).integers(0, 29000, 500)):
        assert data.vocabularies[0].decode(row.source) == " ".join(lines[row.line].split())
