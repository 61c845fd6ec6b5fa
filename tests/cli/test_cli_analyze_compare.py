"""`synmt analyze --compare`, on runs of small models and on files."""

import json
import re
import shutil

import pytest
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


def systems(found):
    return found["tables"][0]["rows"]


def test_two_runs_are_compared_with_trees_and_both_alignments(runs, tmp_path):
    page = tmp_path / "page.html"
    found = report("--compare", *runs, "--html", page, "--top", "2")
    first, second = systems(found)
    assert (first["system"], second["system"], found["test"]) == ("A: base", "B: reader", "test")
    assert (found["metric"], found["ranked_by"], found["parser"]) == (
        "BLEU",
        "chrF2",
        "Stanza (compact, en)",
    )
    assert second["wins"] + second["ties"] + second["losses"] == 4
    assert list(found["sentence_scores"]) == ["base", "reader"]
    assert len(found["sentences"]) == 2
    for one in found["sentences"]:
        assert one["source"] == ENGLISH[one["line"] - 1]
        assert (
            len(one["tree"]["parents"]) == len(one["tree"]["relations"]) == len(one["source_words"])
        )
        assert one["tree"]["relations"].count("root") == 1
        # every line of OTHER has at least a word and a full stop, with pieces
        assert one["alignments"][0]
        assert all(0 <= word < len(one["source_words"]) for word, _ in one["alignments"][0])
    text = page.read_text(encoding="utf-8")
    assert "base and reader, sentence by sentence" in text
    assert "<article" in text
    assert "<td>reference</td>" not in text, "cards replace the table"


def test_two_files_are_compared_and_the_difference_is_marked(files, tmp_path):
    given = [
        "--references",
        files["references"],
        "--source",
        files["source.en"],
        "--plot",
        tmp_path / "boxes.svg",
    ]
    printed, said = analyze("--compare", files["a"], files["b"], *given)
    assert printed.startswith("a and b, sentence by sentence\n\nsystem ")
    rows = [line.split() for line in printed.splitlines()]
    assert rows[4][:2] == ["B:", "b"]
    assert rows[4][-3:] == ["2", "2", "0"]
    assert "  source            A dog sees the two cats on the table.\n" in printed
    assert re.search(
        r"\n +A +[\d.]+  Ein Hund\.\n +B +100\.0  Ein Hund \[sieht die zwei Katzen auf dem Tisch\]",
        printed,
    )
    assert "chrF2|" in printed
    assert "is parsed as" not in said
    assert ">a<" in (tmp_path / "boxes.svg").read_text(encoding="utf-8")
    same = write_lines(tmp_path / "same", OTHER)
    assert (
        "All systems have equal scores in every sentence."
        in analyze("--compare", files["a"], same, *given)[0]
    )


def test_files_need_no_source_and_any_metric_can_be_used(files):
    given = ["--references", files["references"], "--metric", "ter"]
    found = report("--compare", files["b"], files["a"], *given)
    assert (found["ranked_by"], found["higher_is_better"], systems(found)[1]["losses"]) == (
        "TER",
        False,
        2,
    )
    assert systems(found)[1]["difference"] > 0
    for one in found["sentences"]:
        assert one["gain"] < 0
        assert (one["tree"], one["alignments"]) == (None, [None, None])


def test_a_run_can_be_compared_with_a_file_in_either_order(runs, files):
    found = report("--compare", files["b"], runs[0])
    assert [one["system"] for one in systems(found)] == ["A: b", "B: base"]
    for one in found["sentences"]:
        of_file, of_run = one["alignments"]
        assert of_file is None
        assert of_run
    assert (
        systems(report("--compare", runs[0], files["b"]))[1]["wins"] == systems(found)[1]["losses"]
    )


def test_systems_that_tokenize_differently_have_trees_but_no_alignments(runs, tmp_path):
    letters = write_run(tmp_path / "letters", GERMAN, text={"tokenizer": "char"})
    for name, lines in (("source", ENGLISH), ("reference", GERMAN), ("hypothesis", GERMAN)):
        split = [" ".join(line.replace(" ", "␣")) for line in lines]
        write_lines(tokens_folder(Run(letters).test_folder("test")) / f"{name}.txt", split)
    page = tmp_path / "page.html"
    # the recipe of the last run names the languages, but its tokenizer does not concern the raw
    # text
    printed, said = analyze("--compare", runs[0], letters, "--html", page, "--json")
    assert "no alignments: the systems tokenize the source in different ways" in said
    assert "assuming the source is English" not in said
    found = json.loads(printed)
    assert found["parser"] == "Stanza (compact, en)"
    for one in found["sentences"]:
        assert one["alignments"] == [None, None]
        assert not one["source"] or len(one["tree"]["tags"]) > one["source"].count(" ") + 1
    assert 'lang="de"' in page.read_text(encoding="utf-8")


def test_a_language_without_a_parser_leaves_the_trees_out(tmp_path, files, monkeypatch):
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path / "none"))
    source = write_lines(tmp_path / "source.xx", ENGLISH)
    given = ["--references", files["references"], "--source", source, "--json"]
    printed, said = analyze("--compare", files["a"], files["b"], *given)
    assert "no trees of the source: " in said
    assert all(
        one["tree"] is None and one["source_words"] for one in json.loads(printed)["sentences"]
    )
    # a chosen parser must exist
    analyze("--compare", files["a"], files["b"], *given, "--parser", tmp_path / "none", code=1)


def test_systems_with_equal_names_are_called_by_their_paths(files, tmp_path):
    other = write_lines(tmp_path / "more" / "a", GERMAN)
    source = write_lines(tmp_path / "source.txt", ENGLISH)
    given = ["--references", files["references"], "--source", source, "--json"]
    printed, said = analyze("--compare", files["a"], other, *given)
    found = json.loads(printed)
    assert (
        "assuming the source is English: its file name does not end in a language code such "
        "as `.de`" in said
    )
    assert list(found["sentence_scores"]) == [str(files["a"]), str(other)]


def test_systems_that_cannot_be_compared_are_refused(runs, files, tmp_path):
    references = ["--references", files["references"]]
    short = write_lines(tmp_path / "short", GERMAN[:2])
    gone = "gone: no such file or run folder"
    for code, arguments, message in (
        (2, (files["a"], files["b"]), "translations in files need references"),
        (1, (files["a"], tmp_path / "gone", *references), gone),
        (1, (files["a"], tmp_path / "shrot", *references), f"Did you mean '{short}'?"),
        (2, (*runs, *references), "a run has its own source and references"),
        (
            2,
            (files["a"], files["b"], *references, "--test", "x"),
            "--test: files belong to no test set",
        ),
        (2, (*runs, "--test", "x"), "the run has no test set 'x'"),
        (2, (*runs, "--plot", "x.txt"), "x.txt: unsupported picture format"),
        (1, (files["a"], short, *references), "short: 2 lines, but "),
    ):
        printed, said = analyze("--compare", *arguments, code=code)
        assert message in said
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


def test_letters_without_a_font_are_warned_of_except_for_svg(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("synmt.reporting.figures.FONTS", ())
    run = shutil.copytree(runs[0], tmp_path / "猿")
    for ending, warns in (("png", True), ("svg", False)):
        plot = tmp_path / f"plot.{ending}"
        _, said = analyze("--by-length", "--run", run, "--plot", plot)
        assert (f"warning: {plot}: no installed font has 猿; install one" in said) is warns


@pytest.mark.parametrize(
    "arguments", [("--compare", "-", "-"), ("--compare", "a", "-", "--references", "-")]
)
def test_standard_input_is_read_only_once(arguments):
    printed, said = analyze(*arguments, code=2)
    assert printed == ""
    assert "--compare" in said
    assert "standard input can be read only once. Give files for the others." in said


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
    for asked, model in (
        (["--attention"], "the model"),
        (["--trees", "--head", "1.1"], "the model"),
        (["--by-depth"], "random"),
    ):
        printed, said = analyze(*asked, "--run", controlled)
        assert f"Stanza (compact, en); {model} reads random trees instead" in printed
        assert "as the model reads it" not in printed + said


def test_a_model_of_gold_trees_warns_that_groups_use_parsed_trees(tmp_path):
    for number, (control, what) in enumerate(
        (("gold", "gold trees"), ("none", "trees from files"))
    ):
        run = put_under(write_run(tmp_path / str(number), GERMAN, PASCAL, parser=False), control)
        _, said = analyze("--by-depth", "--run", run)
        assert (
            f"the model was trained on {what}, but these trees are the parser's; to use the "
            "model's, give" in said
        )
    plain = write_run(tmp_path / "plain", GERMAN, parser=False)
    assert "was trained on" not in analyze("--by-depth", "--run", plain)[1]


def test_the_page_is_written_even_if_stdout_is_closed(files, tmp_path):
    page = tmp_path / "page.html"
    given = {
        "hypotheses": files["a"],
        "references": files["references"],
        "source": files["source.en"],
        "html": page,
    }
    options = [part for name, path in given.items() for part in (f"--{name}", str(path))]
    # a table is written at once, unlike plain lines
    with Piped("analyze", "--by-length", *options) as process:
        process.stdout.close()
        assert process.wait() == 141
    assert "BLEU by source length" in page.read_text(encoding="utf-8")
