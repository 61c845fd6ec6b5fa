"""`synmt analyze --by-length`, `--by-depth`, `--by-distance` and `--by-relation`, with given trees
and parsed ones."""

import re
import shlex
import sys
from datetime import date

import pytest
from pages import Reader
from small_run import write_tests
from test_cli_analyze import finish, report, run
from tiny import write_lines

from synmt import __version__
from synmt.analysis.groups.report import analyze_groups
from synmt.analysis.options import GroupOptions
from synmt.data.vocabulary_training import train_vocabulary
from synmt.errors import UsageError
from synmt.evaluation.metrics import make_metric, score_system
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
def place(tmp_path, monkeypatch):
    """Two runs, the newer one syntax-aware, the same texts as files, and trees of the source."""
    make_run(tmp_path / "runs" / "pascal", GOOD, "2026-01-02", parser=StanzaParser("en").identity)
    make_run(tmp_path / "runs" / "plain", POOR, "2026-01-01")
    for name, lines in (
        ("good.de", GOOD),
        ("poor.de", POOR),
        ("reference.de", REFERENCES),
        ("source.en", SOURCE),
    ):
        write_lines(tmp_path / name, lines)
    write_lines(tmp_path / "reference", REFERENCES)
    write_lines(tmp_path / "many.tsv", ["\t".join("123456789")] * 13)
    write_lines(tmp_path / "gold.conllu", TREES * 6)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    return tmp_path


FILES = ("--hypotheses", "good.de", "--references", "reference.de", "--source", "source.en")
NAMELESS = ("--hypotheses", "good.de", "--references", "reference")
GOLD = ("--parses", "gold.conllu")


def groups(table):
    return {row["group"]: row["sentences"] for row in table["rows"]}


@pytest.mark.parametrize("given", [(), FILES])
def test_trees_that_are_given_make_the_groups(place, caplog, given):
    found = report("--by-depth", "--by-distance", "--by-relation", *given, *GOLD)
    assert found["trees"] == "gold.conllu"
    depth, mean, longest, relation = found["groups"]
    assert (depth["by"], groups(depth)) == ("source tree depth", {"0": 6, ">0": 6})
    assert (mean["by"], groups(mean)) == ("source mean distance to the parent", {"≤0": 6, ">0": 6})
    assert (longest["by"], groups(longest)) == (
        "source longest distance to the parent",
        {"0": 6, ">0": 6},
    )
    # det, nsubj and obj are in the same six sentences, too few for a row
    assert (relation["by"], groups(relation)) == ("source relation", {"punct": 12})
    assert (
        "relations in fewer than 10 sentences are left out: det, nsubj and obj" in caplog.messages
    )
    assert "exact match" not in run("--by-relation", *given, *GOLD).stdout


def test_a_group_of_trees_scores_as_its_sentences_alone(place):
    deep = report("--by-depth", *GOLD, "--baseline", "runs/plain")["groups"][0]["rows"][1]
    alone, base = (
        score_system(one[1::2], REFERENCES[1::2], tokenize="none")["bleu"].value
        for one in (GOOD, POOR)
    )
    assert [deep["systems"][name]["score"]["value"] for name in ("pascal", "plain")] == [
        alone,
        base,
    ]
    # 6 words of 8
    assert (deep["share"], deep["text_share"]) == (0.5, 0.75)


def test_the_parser_of_the_run_parses_where_no_trees_are_given(place, caplog):
    result = run("--by-depth", "--buckets", "0,1")
    assert "trees of the source: Stanza (compact, en)" in caplog.messages
    assert "trees: Stanza (compact, en)" in result.stdout
    assert report("--by-depth", "--buckets", "1")["trees"] == "Stanza (compact, en)"
    # a run that records no parser takes its recipe's
    named = report("--by-depth", "--run", "runs/plain")
    assert named["trees"] == "Stanza (compact, en)"
    assert report("--by-depth", "runs/plain") == named


def test_the_source_of_files_is_parsed_as_english(place):
    found = report("--by-depth", "--buckets", "1", *FILES)
    assert (found["trees"], groups(found["groups"][0])) == (
        "Stanza (compact, en)",
        {"0-1": 6, ">1": 6},
    )


def test_conditions_leave_out_trees_lengths_and_text(place):
    found = report("--by-length", "--by-depth", *GOLD, "--where", "kind=long", "--side", "source")
    length, depth = found["groups"]
    assert groups(depth) == {"any": 6}
    assert length["rows"][0]["sentences"] == length["all"]["sentences"] == 6
    alone = score_system(GOOD[1::2], REFERENCES[1::2], tokenize="none")["bleu"].value
    for table in (depth, length):
        assert table["all"]["systems"]["pascal"]["score"]["value"] == alone


def test_lengths_of_the_reference_need_no_source(place):
    found = report("--by-length", "--side", "target", "--buckets", "2,5", *FILES[:4])
    assert (found["groups"][0]["by"], groups(found["groups"][0])) == (
        "reference length",
        {"1-2": 6, "3-5": 0, ">5": 6},
    )


def test_the_buckets_of_labelled_distributions_count_the_words_of_the_reference(place):
    # references have 2 and 6 words, sources 2 and 6; one longer source changes nothing
    write_lines(place / "source.en", [" ".join(["long"] * 60), *SOURCE[1:]])

    def table(*arguments):
        return report("--by-length", "--buckets", "ldd", *FILES, *arguments)["groups"][0]

    assert (table()["by"], groups(table())["1-10"]) == ("reference length", 12)
    by_source = table("--side", "source")
    assert (by_source["by"], groups(by_source)["1-10"], groups(by_source)[">50"]) == (
        "source length",
        11,
        1,
    )
    assert (
        report("--by-length", "--by-depth", *GOLD, "--buckets", "ldd")["groups"][1]["by"]
        == "source tree depth"
    )
    # a paper has buckets of lengths, and depths have quarters
    length, depth = report("--by-length", "--by-depth", *GOLD, "--buckets", "deps-san")["groups"]
    assert len(length["rows"]) == 9
    assert groups(depth) == {"0": 6, ">0": 6}


def test_groups_are_reported_without_the_command_line(place):
    options = GroupOptions(
        by_length=True, run=place / "runs" / "pascal", baseline=place / "runs" / "plain"
    )
    answer = analyze_groups(options)
    assert (answer.system, answer.runs) == (
        "pascal",
        [place / "runs" / "pascal", place / "runs" / "plain"],
    )
    assert answer.as_json() == report("--by-length", "--baseline", "runs/plain")
    [table] = answer.tables
    assert (answer.title, table.title) == (
        "pascal against plain on the test set",
        "BLEU by source length",
    )
    assert [row[:2] for row in table.rows] == [["1-10", 12], ["all", 12]]
    assert answer.notes[0].startswith("BLEU|nrefs:1")
    with pytest.raises(UsageError, match="no groups are chosen"):
        analyze_groups(GroupOptions(run=place / "runs" / "pascal"))


def test_pieces_are_those_of_the_runs_vocabulary(place):
    vocabulary = train_vocabulary(SOURCE, VocabularyRecipe(size=290))
    vocabulary.save(place / "runs" / "pascal", "source")
    counts = [len(vocabulary.encode(line).ids) for line in SOURCE]
    found = report("--by-length", "--unit", "pieces", "--buckets", counts[0])["groups"][0]
    assert (found["unit"], found["text_in"]) == ("pieces", "pieces")
    assert groups(found) == {f"1-{counts[0]}": 6, f">{counts[0]}": 6}
    assert found["rows"][0]["text_share"] == pytest.approx(counts[0] / (counts[0] + counts[1]))


def test_cached_statistics_are_not_counted_again(place, monkeypatch):
    arguments = ("--by-length", "--buckets", "2", "--baseline", "runs/plain")
    first = report(*arguments)
    monkeypatch.setattr(
        type(make_metric("bleu")), "statistics", lambda *texts: pytest.fail("counted again")
    )
    assert report(*arguments) == first
    assert report("--by-depth", *GOLD, "--where", "kind=long")["groups"][0]["all"]["sentences"] == 6


def test_the_table_shows_the_interval_and_what_it_means(place):
    shown = run("--by-relation", "--by-depth", *GOLD, "--baseline", "runs/plain").stdout
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    punct = report("--by-relation", *GOLD, "--baseline", "runs/plain")["groups"][0]["rows"][0]
    result = punct["systems"]["pascal"]["score"]
    compared, corrected = result["comparison"], result["holm_p"]
    interval = f"{compared['low']:+.2f} to {compared['high']:+.2f}".split()
    assert rows["punct"][-4:] == [*interval, f"{corrected:.3f}"]
    assert compared["p_value"] < corrected
    assert rows[">0"][1] == "*"
    # a difference, and no interval
    assert re.fullmatch(r"[+-]\d+\.\d\d", rows[">0"][-1])
    for line in (
        "difference: from plain",
        "95 % interval: bootstrap of the sentences (Koehn, 2004), 1,000 resamples, seed 12345",
        "*: fewer than 10 sentences, too few for an interval",
        "depth: number of arcs from the root to the deepest word, without punctuation",
        "trees: gold.conllu",
    ):
        assert shown.splitlines().count(line) == 1


def test_each_table_is_a_part_of_the_page_with_its_figure(place):
    result = run(
        "--by-depth", "--by-relation", *GOLD, "--baseline", "runs/plain", "--html", "page.html"
    )
    assert result.exit_code == 0, result.exception
    read = Reader((place / "page.html").read_text(encoding="utf-8"))
    assert read.text["h2", ""] == ["BLEU by source tree depth", "BLEU by source relation"]
    # and one of what the runs are
    assert (read.tags.count("table"), read.tags.count("img")) == (3, 2)
    faint = read.text["p", "faint"]
    assert "trees: gold.conllu" in faint
    assert "share of words: share of their text" in faint
    caption = (
        "pascal against plain on the test set. BLEU of each system; in the middle, "
        "differences from plain with "
    )
    assert read.text["figcaption", ""][0].startswith(caption)


def test_several_tables_are_drawn_into_one_file(place):
    assert (
        run("--by-depth", "--by-distance", "--by-label", *GOLD, "--plot", "all.svg").exit_code == 0
    )
    drawn = (place / "all.svg").read_text(encoding="utf-8")
    labels = ("Source tree depth (arcs)", "Source mean distance to the parent (words)", "kind")
    assert all(f">{label}<" in drawn for label in labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--by-length", "--unit", "pieces", *FILES],
            "--unit: counting pieces needs the vocabulary of a run",
        ),
        (
            ["--by-length", "--side", "taget"],
            "--side: there is no side 'taget'. Sides: source, target. Did you mean",
        ),
        (["--by-length", *GOLD], "no chosen analysis uses --parses. Add `--by-depth`"),
        (["--by-length", "--buckets", "pascla"], "Did you mean 'pascal'?"),
        (["--by-length", "--buckets", "0,5"], "--buckets: lengths are whole numbers from 1 on"),
        (["--by-length", "--buckets", "1.5,5"], "--buckets: lengths are whole numbers from 1 on"),
        (
            ["--by-depth", "--buckets", "pascal"],
            "pascal, deps-san, ldd are buckets of lengths. Add `--by-length`",
        ),
        (["--by-label", "--buckets", "2,3"], "no analysis uses buckets. Add `--by-length`, "),
        (
            ["--by-length", "--by-depth", "--buckets", "2,3"],
            "the same numbers cannot be buckets of --by-length and --by-depth. Choose one of them.",
        ),
        (["--by-depth", *FILES[:4]], "lengths and trees of the source need the source text"),
        (
            ["--by-depth", "--side", "target", *NAMELESS],
            "the language of the target is unknown. End the name of the",
        ),
        (
            ["--by-label", "many.tsv", "--plot", "x.png"],
            "a plot shows at most 8 tables, not 9 (1, 2, 3",
        ),
    ],
)
def test_wrong_usage_is_explained_in_one_message(place, arguments, message):
    error = run(*arguments).exception
    assert error.exit_code == 2
    assert message in str(error)


def test_trees_of_the_reference_need_a_parser_of_its_language(place, monkeypatch):
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(place / "nowhere"))
    error = str(run("--by-depth", "--side", "target").exception)
    assert "no Stanza model for 'de' to parse the target" in error
    assert "or give the trees by `--parses FILE.conllu`" in error


def test_trees_of_another_text_are_refused(place):
    write_lines(place / "short.conllu", TREES)
    assert "has 2 sentences, but the text has 12 lines" in str(
        run("--by-depth", "--parses", "short.conllu").exception
    )


def test_the_source_of_files_is_parsed_as_the_language_of_its_name(place, monkeypatch):
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(place / "none"))
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    error = run("--by-depth", "--parser", "official", *FILES).exception
    assert "for 'en' not found" in str(error)
    assert str(error).endswith(
        "Name a model with `--parser`, or give the trees by `--parses FILE.conllu`"
    )
    write_lines(place / "source.de.gz", [])
    (place / "source.de").write_text((place / "source.en").read_text())
    error = run("--by-depth", *FILES[:-1], "source.de").exception
    assert "for 'de' not found" in str(error)


def test_empty_buckets_at_the_end_are_shown_only_if_they_were_chosen(place):
    def groups(*arguments):
        return [row["group"] for row in report("--by-length", *arguments)["groups"][0]["rows"]]

    assert groups() == ["1-10"]
    assert groups("--buckets", "pascal") == ["1-10", "11-20", "21-30", "31-40", "41-50", ">50"]
    # a plot shows what the table shows
    for buckets, last in (((), "1-10"), (("--buckets", "pascal"), ">50")):
        assert run("--by-length", *buckets, "--plot", "length.svg").exit_code == 0
        drawn = (place / "length.svg").read_text(encoding="utf-8")
        assert (">1-10<" in drawn, "&gt;50<" in drawn) == (True, last == ">50")
    # one in the middle says something
    assert groups("--buckets", "1,2,4,5") == ["1", "2", "3-4", "5", ">5"]


def test_the_page_says_what_the_runs_are_and_how_it_was_made(place, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/synmt", "analyze", "--html", "a <b> 'c'.html"])
    assert run("--by-length", "--baseline", "runs/plain", "--html", "a <b> 'c'.html").exit_code == 0
    read = Reader((place / "a <b> 'c'.html").read_text(encoding="utf-8"))
    assert read.text["caption", ""][0] == "Runs"
    assert read.text["th", ""][:4] == ["run", "pascal", "plain", "recipe"]
    assert read.text["td", ""][:4] == ["any", "any", "en → de", "en → de"]
    # the page tells its readers how to make it again
    [command] = read.text["code", ""]
    assert shlex.split(command) == ["synmt", "analyze", "--html", "a <b> 'c'.html"]
    assert f"Made by synmt {__version__} on {date.today().isoformat()}:" in read.text["p", "faint"]
    # files are no runs
    assert run("--by-length", *FILES, "--html", "files.html").exit_code == 0
    assert "Runs" not in (place / "files.html").read_text(encoding="utf-8")


def test_without_matplotlib_a_page_has_no_figures_and_says_so(place, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("--by-length", *FILES, "--html", "page.html")
    assert result.exit_code == 0, result.output
    page = (place / "page.html").read_text(encoding="utf-8")
    assert "no figure: matplotlib is not installed" in page
    assert "<table" in page
    assert "<img" not in page
    assert "the page has no figures: `pip install 'synmt[plot]'` installs matplotlib" in caplog.text
    assert (
        run(
            "--compare", "good.de", "poor.de", "--references", "reference.de", "--html", "page.html"
        ).exit_code
        == 0
    )
