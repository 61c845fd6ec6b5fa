"""`synmt prepare`, run as a person runs it."""

import gzip
import resource
from pathlib import Path
from unittest.mock import patch

import pytest
from corpus_server import serving
from forked import Piped, run_command
from places import TESTS
from preparing import corpus_of
from public_archives import plain, table, tgz
from sentences import lines as sentences
from tiny import fail, lines_of, succeed, write_recipe

from synmt.corpora import mtdata_index
from synmt.data.corpus import PreparedCorpus, is_complete

pytestmark = pytest.mark.journey


PAIRS = [
    ("The monkey eats a banana.", "Der Affe isst."),
    ("A girl sees.", "Ein Kind sieht."),
    ("", "x"),
]


@pytest.fixture
def recipe(tmp_path, monkeypatch, empty_cache):
    monkeypatch.chdir(tmp_path)
    corpus_of(tmp_path / "text", PAIRS, PAIRS)
    path = tmp_path / "small.yaml"
    path.write_text(
        "source: en\ntarget: de\ncorpus: {folder: text}\nvocabulary: {kind: word, size: 50}\n"
    )
    return path


def test_the_folder_is_data_and_the_table_is_for_people(recipe):
    done = succeed("prepare", recipe, "--data", "d")
    [line] = lines_of(done)
    folder = Path(line)
    assert folder.parent == Path("d/prepared")
    assert is_complete(folder)
    assert lines_of(succeed("prepare", recipe, "--data", "d")) == [line]
    assert lines_of(succeed("prepare", recipe, "--data", "d", "filters.max_words=3")) != [line]
    assert b"dropped: empty" in done.stderr
    assert b"pieces per word" in done.stderr


def test_trees_that_lie_beside_the_text_are_added(place):
    write_recipe(place / "gold.yaml", place / "corpus")
    done = succeed("prepare", "gold.yaml", "--trees", cwd=place)
    assert b"source trees: words without a separate piece" in done.stderr
    [folder] = lines_of(done)
    [facts] = PreparedCorpus.open(place / folder).annotations().values()
    assert facts["parser"]["parser"] == "conllu"


MISTAKES = """
2 | vocabulary.kind=words | vocabulary.kind
2 | corpus.folder=nowhere | nowhere: corpus.folder: there is no such folder.
1 | filters.max_words=1 | no pair of the training text is kept (empty: 1, too long (words): 2)
1 | vocabulary.kind=bpe vocabulary.size=8000 | cannot learn 8000 pieces from this text
1 | --data file | cannot write
"""


@pytest.mark.parametrize("case", MISTAKES.strip().splitlines())
def test_a_mistake_is_one_line_and_an_exit_code(recipe, case):
    code, arguments, message = case.split(" | ")
    Path("file").write_text("")
    assert message in fail(int(code), "prepare", recipe, *arguments.split())


def test_an_interruption_leaves_by_130_and_can_be_gone_on_with(recipe):
    with patch("synmt.data.prepare.train_vocabulary", side_effect=KeyboardInterrupt):
        fail(130, "prepare", recipe)
    succeed("prepare", recipe)


def run_with_a_small_disk(*arguments):
    """Be a command whose files can have 600 bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
    run_command(*arguments)


def test_a_disk_that_is_full_is_one_line(recipe):
    with Piped("prepare", recipe, work=run_with_a_small_disk) as process:
        _, errors = process.communicate()
        assert process.wait() == 1
    assert b"cannot write: File too large. Make room" in errors
    assert b"Traceback" not in errors


def test_a_recipe_of_public_corpora_is_downloaded_built_and_prepared(
    tmp_path, monkeypatch, empty_cache
):
    news = "data.statmt.org/news-commentary/v16/training/news-commentary-v16.de-en.tsv.gz"
    crawl = "www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
    crawled = {f"commoncrawl.de-en.{one}": plain(sentences(one, 20, 5)) for one in ("de", "en")}
    files = {news: gzip.compress(table("de", "en", 24, 0)), crawl: tgz(crawled)}
    # mtdata needs half a minute to make it
    monkeypatch.setattr(mtdata_index, "_index", lambda: TESTS / "mtdata-index.jsonl")
    monkeypatch.chdir(tmp_path)
    Path("mix.yaml").write_text(
        "source: en\ntarget: de\n"
        "corpus:\n"
        "  train: [Statmt-news_commentary-16-deu-eng, {id: Statmt-commoncrawl_wmt13-1-deu-eng, "
        "lines: 9}]\n"
        "  valid: {id: Statmt-news_commentary-16-deu-eng, fraction: 0.25}\n"
        "vocabulary: {kind: word, size: 500}\n"
    )
    with serving(files) as server:
        monkeypatch.setenv("SYNMT_MIRROR", server.address)
        done = succeed("prepare", "mix.yaml")
    prepared = PreparedCorpus.open(Path(lines_of(done)[0]))
    assert {split: facts["lines"] for split, facts in prepared.facts["splits"].items()} == {
        "train": 33,
        "valid": 6,
    }
    # without the network, from the cache
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    assert lines_of(succeed("prepare", "mix.yaml")) == lines_of(done)
