"""`synmt analyze --by-length`, `--by-depth`, `--by-distance` and `--by-relation`, with given trees
and parsed ones."""

import shlex
import sys

import pytest
from analyzing import finish, report, run
from pages import Reader
from small_run import write_tests
from tiny import write_lines

from synmt.data.vocabulary_training import train_vocabulary
from synmt.parsing.parser import StanzaParser
from synmt.recipe.data import VocabularyRecipe
from synmt.run_folder import Run

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("show_remarks")]

SOURCE = ["Go !", "The monkey eats a banana ."] * 6
REFERENCES = ["Geh !", "Der Affe isst eine Banane ."] * 6
GOOD = ["Geh !", "Der Affe isst eine Banane .", "Los !", "Der Affe isst die Banane ."] * 3
POOR = ["Geh !", "Der Affe isst Banane ."] * 6
TREES = (
    "1\tGo\t_\tVERB\t_\t_\t0\troot\t_\t_\n2\t!\t_\tPUNCT\t_\t_\t1\tpunct\t_\t_\n",
    "1\tThe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tmonkey\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
    "3\teats\t_\tVERB\t_\t_\t0\troot\t_\t_\n4\ta\t_\tDET\t_\t_\t5\tdet\t_\t_\n"
    "5\tbanana\t_\tNOUN\t_\t_\t3\tobj\t_\t_\n6\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_\n",
)
"""Depths 0 and 2; the longest distances 0 and 2, the mean ones 0 and 5/4."""

RECIPE = "name: any\nsource: en\ntarget: de\ncorpus: {folder: data}\nevaluation: {tokenize: none}\n"


def make_run(folder, hypotheses, when, **info):
    write_tests(Run(folder), SOURCE, REFERENCES, hypotheses)
    write_lines(folder / "tests" / "test" / "labels.tsv", ["kind", *["short", "long"] * 6])
    finish(folder, when, RECIPE, **info)


@pytest.fixture
def place(tmp_path, monkeypatch, empty_cache):
    """Two runs, the newer one syntax-aware, the same texts as files, and trees of the source."""
    make_run(tmp_path / "runs" / "pascal", GOOD, "2026-01-02", parser=StanzaParser("en").identity)
    make_run(tmp_path / "runs" / "plain", POOR, "2026-01-01")
    texts = {"good.de": GOOD, "poor.de": POOR, "source.en": SOURCE, "gold.conllu": TREES * 6}
    for name, lines in (texts | {"reference.de": REFERENCES, "reference": REFERENCES}).items():
        write_lines(tmp_path / name, lines)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILES = ["--hypotheses", "good.de", "--references", "reference.de", "--source", "source.en"]
GOLD = ("--parses", "gold.conllu")


def trees_of(found):
    [trees] = [note for note in found["tables"][0]["notes"] if note.startswith("trees: ")]
    return trees.removeprefix("trees: ")


def groups(table):
    *rows, _ = table["rows"]
    return {row["group"]: row["sentences"] for row in rows}


@pytest.mark.parametrize("given", [(), FILES])
def test_trees_that_are_given_make_the_groups(place, given):
    asked = ("--by-depth", "--by-distance", "--by-arity", "--by-projectivity", "--by-relation")
    found = report(*asked, *given, *GOLD)
    assert trees_of(found) == "gold.conllu"
    assert {
        one["title"].removeprefix("BLEU by source "): groups(one) for one in found["tables"]
    } == {
        "tree depth": {"0": 6, ">0": 6},
        "mean distance to the parent": {"≤0": 6, ">0": 6},
        "longest distance to the parent": {"0": 6, ">0": 6},
        "arity": {"0": 6, ">0": 6},
        "non-projective arcs": {"any": 12},
        "relation": {"punct": 12, "det": 6, "nsubj": 6, "obj": 6},
    }


def test_the_parser_of_the_run_parses_where_no_trees_are_given(place):
    assert trees_of(report("--by-depth", "--buckets", "1")) == "Stanza (compact, en)"
    entropy = report("--by-entropy", "--buckets", "0.01")["tables"][0]
    assert sum(groups(entropy).values()) == 12
    # a run that records no parser takes its recipe's
    named = report("--by-depth", "--run", "runs/plain")
    assert trees_of(named) == "Stanza (compact, en)"
    assert report("--by-depth", "runs/plain") == named


def test_the_buckets_of_labelled_distributions_count_the_words_of_the_reference(place):
    # references have 2 and 6 words, sources 2 and 6; one longer source changes nothing
    write_lines(place / "source.en", [" ".join(["long"] * 60), *SOURCE[1:]])
    asked = ("--by-length", "--buckets", "ldd", *FILES)
    for more, side, tens, longer in (
        ((), "target", 12, 0),
        (("--side", "source"), "source", 11, 1),
    ):
        [table] = report(*asked, *more)["tables"]
        assert (table["title"], groups(table)["1-10"]) == (f"BLEU by {side} length", tens)
        assert groups(table)[">50"] == longer
    # a paper has buckets of lengths, and depths have quarters
    _, depth = report("--by-length", "--by-depth", *GOLD, "--buckets", "deps-san")["tables"]
    assert groups(depth) == {"0": 6, ">0": 6}


def test_pieces_are_those_of_the_runs_vocabulary(place):
    vocabulary = train_vocabulary(SOURCE, VocabularyRecipe(size=290))
    vocabulary.save(place / "runs" / "pascal", "source")
    few, many = (len(vocabulary.encode(line).ids) for line in SOURCE[:2])
    [found] = report("--by-length", "--unit", "pieces", "--buckets", few)["tables"]
    assert groups(found) == {f"1-{few}": 6, f">{few}": 6}
    assert found["rows"][0]["text_share"] == pytest.approx(few / (few + many))


def test_the_source_of_files_is_parsed_as_the_language_of_its_name(place, monkeypatch):
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(place / "none"))
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    for language, asked in ("en", ["--parser", "official", *FILES]), ("de", ["--side", "target"]):
        assert f"for '{language}' not found" in str(run("--by-depth", *asked).exception)
    (place / "source.en").rename(place / "source.de")
    error = run("--by-depth", *FILES[:-1], "source.de").exception
    assert "for 'de' not found" in str(error)


def test_empty_buckets_at_the_end_are_shown_only_if_they_were_chosen(place):
    shown = [
        " ".join(groups(report("--by-length", *chosen)["tables"][0]))
        for chosen in ((), ("--buckets", "pascal"), ("--buckets", "1,2,4,5"))
    ]
    # one in the middle says something
    assert shown == ["1-10", "1-10 11-20 21-30 31-40 41-50 >50", "1 2 3-4 5 >5"]


def test_the_page_has_its_tables_what_the_runs_are_and_how_it_was_made(place, monkeypatch):
    page = place / "a <b> 'c'.html"
    monkeypatch.setattr(sys, "argv", ["/usr/bin/synmt", "analyze", "--html", page.name])
    asked = ("--by-depth", "--by-relation", *GOLD, "--baseline", "runs/plain", "--html", page.name)
    assert run(*asked).exit_code == 0
    read = Reader(page.read_text(encoding="utf-8"))
    assert read.text["h2", ""] == ["BLEU by source tree depth", "BLEU by source relation"]
    # and what the runs are
    assert (read.tags.count("table"), read.tags.count("img")) == (2, 2)
    assert read.text["summary", ""] == ["Recipe of pascal", "Recipe of plain"]
    # the page tells its readers how to make it again
    [command] = read.text["code", ""]
    assert shlex.split(command) == ["synmt", "analyze", "--html", page.name]
    # files are no runs
    assert run("--by-length", *FILES, "--html", page.name).exit_code == 0
    assert "Recipe" not in page.read_text(encoding="utf-8")


def test_without_matplotlib_a_page_has_no_figures_and_says_so(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    compared = ("--compare", "good.de", "poor.de", *FILES[2:4])
    for asked in (("--by-length", *FILES), compared):
        result = run(*asked, "--html", "page.html")
        assert result.exit_code == 0, result.output
        page = (place / "page.html").read_text(encoding="utf-8")
        assert "<img" not in page
        assert "(no figure: matplotlib is not installed)" in page
