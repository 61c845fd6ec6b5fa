"""`synmt analyze --compare`, on runs of small models and on files."""

import json

import pytest
from cases import cases
from forked import Piped
from small_run import PASCAL, TEXT, make_run, write_tests
from tiny import analyze, write_lines

from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.evaluation.outputs import tokens_folder
from synmt.run_folder import Run

pytestmark = pytest.mark.journey

ENGLISH = [*TEXT[:3], ""]
GERMAN = [*TEXT[3:], ""]
OTHER = ["Der Affe isst eine Banane.", "Ein Hund.", "Die Bücher bestellen die Mädchen.", ""]


def write_run(folder, hypothesis=None, *variants, **sections):
    """Write a finished run with translations of a test set, by default its own."""
    run = make_run(folder, *variants, **sections)
    own = hypothesis or [one.text for one in Translator.load(run, device="cpu").translate(ENGLISH)]
    return write_tests(run, ENGLISH, GERMAN, own).folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return write_run(folder / "base", OTHER), write_run(folder / "reader", None, PASCAL)


@pytest.fixture
def files(tmp_path):
    named = {"a": OTHER, "b": GERMAN, "references": GERMAN, "source.en": ENGLISH}
    return {name: write_lines(tmp_path / name, lines) for name, lines in named.items()}


def report(*arguments):
    return json.loads(analyze(*arguments, "--json")[0])


def test_two_runs_are_compared_with_trees_and_both_alignments(runs, tmp_path):
    page = tmp_path / "page.html"
    found = report("--compare", *runs, "--html", page, "--top", "2")
    first, second = found["tables"][0]["rows"]
    assert (first["system"], second["system"]) == ("A: base", "B: reader")
    assert found["parser"] == "Stanza (compact, en)"
    for one in found["sentences"]:
        words, tree = one["source_words"], one["tree"]
        assert len(tree["parents"]) == len(tree["relations"]) == len(words)
        # every line of OTHER has at least a word and a full stop, with pieces
        assert one["alignments"][0]
        assert all(0 <= word < len(words) for word, _ in one["alignments"][0])
    text = page.read_text(encoding="utf-8")
    assert "<article" in text
    assert ">reference</td>" not in text, "cards replace the table"


def test_two_files_are_compared_and_the_difference_is_marked(files, tmp_path):
    boxes = tmp_path / "boxes.svg"
    given = ("--references", files["references"], "--source", files["source.en"], "--plot", boxes)
    printed, said = analyze("--compare", files["a"], files["b"], *given)
    rows = [line.split() for line in printed.splitlines()]
    assert "The difference from a is not significant: " in printed
    assert (rows[6][:2], rows[6][-3:]) == (["B:", "b"], ["2", "2", "0"])
    assert "  source            A dog sees the two cats on the table.\n" in printed
    assert "  Ein Hund [sieht die zwei Katzen auf dem Tisch]" in printed
    assert "is parsed as" not in said
    assert ">a<" in boxes.read_text(encoding="utf-8")
    chosen = report("--compare", files["a"], files["b"], *given, "--sentence", "3")
    assert {row["line"] for row in chosen["tables"][2]["rows"]} == {3}
    _, said = analyze("--compare", files["a"], files["b"], *given, "--sentence", "5", code=2)
    assert "--sentence 5: there are 4 sentences" in said
    same = write_lines(tmp_path / "same", OTHER)
    printed, _ = analyze("--compare", files["a"], same, *given)
    assert printed.splitlines()[6].split()[-3:] == ["0", "4", "0"]


def test_systems_that_tokenize_differently_have_no_trees_and_alignments(runs, tmp_path):
    letters = write_run(tmp_path / "letters", GERMAN, text={"tokenizer": "char"})
    for name, lines in (("source", ENGLISH), ("reference", GERMAN), ("hypothesis", GERMAN)):
        split = [" ".join(line.replace(" ", "␣")) for line in lines]
        write_lines(tokens_folder(Run(letters).test_folder("test")) / f"{name}.txt", split)
    found = report("--compare", runs[0], letters)
    for one in found["sentences"]:
        assert (one["tree"], one["alignments"]) == (None, [None, None])


APART = """
2 => A B => the reference is missing
1 => A GONE --references REF => GONE: no such file or run folder
2 => RUN RUN2 --plot x.txt => x.txt: unsupported picture format
1 => A SHORT --references REF => SHORT: 2 lines, but
"""


def test_systems_that_cannot_be_compared_are_refused(runs, files, tmp_path):
    short = write_lines(tmp_path / "short", GERMAN[:2])
    named = {"A": files["a"], "B": files["b"], "REF": files["references"], "RUN": runs[0]}
    named |= {"RUN2": runs[1], "GONE": "gone", "SHORT": short}
    for code, arguments, message in cases(APART):
        given = (named.get(one, one) for one in arguments.split())
        printed, said = analyze("--compare", *given, code=int(code))
        assert message.lower() in said.lower()
        assert printed == ""


def test_trees_and_alignments_are_computed_only_for_json_and_pages(runs, tmp_path, monkeypatch):
    def refuse(*arguments, raw):
        raise SynmtError("nothing is to be parsed")

    monkeypatch.setattr("synmt.analysis.compare.report.find_words", refuse)
    analyze("--compare", *runs)
    # errors while making the page are raised before anything is printed
    for shown in (["--json"], ["--html", tmp_path / "page.html"]):
        printed, said = analyze("--compare", *runs, *shown, code=1)
        assert printed == ""
        assert "nothing is to be parsed" in said


@pytest.fixture(scope="module")
def controlled(tmp_path_factory):
    """A run whose model reads random trees instead of the parser's."""
    run = put_under(
        write_run(tmp_path_factory.mktemp("controlled") / "random", GERMAN, PASCAL), "random"
    )
    own = Translator.load(Run(run), device="cpu").translate(ENGLISH)
    write_lines(run / "tests" / "test" / "hypothesis.txt", [one.text for one in own])
    return run


def put_under(run, control):
    """Set the control in the recipe of a run."""
    recipe = Run(run).recipe()
    parser = recipe.parser.model_copy(update={"control": control})
    Run(run).write_recipe(recipe.model_copy(update={"parser": parser}))
    return run


def test_trees_that_replace_the_parsers_trees_are_reported(controlled):
    for asked in (["--attention"], ["--trees", "--head", "1.1"]):
        printed, said = analyze(*asked, "--run", controlled)
        assert "Stanza (compact, en); the model reads random trees instead" in printed
        assert "as the model reads it" not in printed + said


def test_the_page_is_written_even_if_stdout_is_closed(files, tmp_path):
    page = tmp_path / "page.html"
    options = ("--hypotheses", files["a"], "--references", files["references"], "--html", page)
    # a table is written at once, unlike plain lines
    with Piped("analyze", "--by-length", *options, "--side", "target") as process:
        process.stdout.close()
        assert process.wait() == 1
    assert "BLEU by target length" in page.read_text(encoding="utf-8")
