"""`synmt analyze --trees` on runs of small models."""

import json
from xml.etree import ElementTree

import pytest
from cases import cases
from small_run import PASCAL, TEXT, make_run, write_tests
from tiny import analyze, chain_of

from synmt.syntax.conllu import format_conllu

pytestmark = pytest.mark.journey

SOURCE, REFERENCE = TEXT[:3], TEXT[3:]
PARSED = "the test set, parsed by Stanza (compact, en)"
GOLD = ("--gold", "en.conllu")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Runs with random weights, and chains as the gold trees of both sides."""
    project = tmp_path_factory.mktemp("project")
    target = {"name": "dbsa", "layers": [1], "heads": 2, "side": "target"}
    for name, variants, options in (
        ("lisa", [{"name": "lisa"}], {}),
        ("dbsa", [{"name": "dbsa", "layers": [2]}, target], {}),
        ("reader", [PASCAL], {}),
        ("plain", [], {"max_pieces": 16}),
        ("pascal", [PASCAL], {"parser": False}),
    ):
        run = make_run(project / "runs" / name, *variants, **options)
        write_tests(run, SOURCE, REFERENCE)
    long = " ".join(["girl"] * 30)
    odd = [SOURCE[0], "", long, "The boys"]
    texts = {"en": SOURCE, "de": REFERENCE, "odd": odd, "long": [long], "empty": [""]}
    for name, lines in texts.items():
        blocks = [format_conllu(chain_of(one), one, 1) if one else "# text = \n\n" for one in lines]
        (project / f"{name}.conllu").write_text("".join(blocks), encoding="utf-8")
    dots = "# text = .\n1\t.\t_\tPUNCT\t_\t_\t0\troot\t_\t_\n\n"
    (project / "dots.conllu").write_text(dots)
    return project


def output(project, name, *arguments, code=0):
    return analyze("--trees", "--run", f"runs/{name}", *arguments, code=code, cwd=project)


def report(project, name, *arguments):
    return json.loads(output(project, name, *arguments, "--json")[0])


def accuracies(found):
    """Return the rows of the table of all trees, by name."""
    return {row["trees"]: row for row in found["tables"][0]["rows"]}


def test_a_head_is_compared_with_gold_trees_like_the_baselines(project):
    found = report(project, "lisa", *GOLD)
    expected = {"gold": "gold, en.conllu", "sentences": 3, "words": 23}
    assert expected.items() <= found.items()
    rows = accuracies(found)
    assert list(rows) == ["head 1.1 (lisa)", "left branching", "right branching"]
    assert rows["left branching"]["DA"] == 1
    # a chain of W words has W - 1 arcs
    assert rows["right branching"]["UA"] == pytest.approx(20 / 23)
    for name, relations in found["relations"].items():
        correct = sum(words * directed for words, directed, _ in relations.values())
        assert correct == pytest.approx(23 * rows[name]["DA"])


def test_without_gold_trees_the_test_set_is_parsed_by_the_parser_of_the_run(project):
    output(project, "lisa", "--html", "trees.html")
    assert "NOUN → DET</th>" in (project / "trees.html").read_text(encoding="utf-8")
    found = report(project, "lisa")
    # without the three full stops, which the parser splits off
    assert (found["gold"], found["sentences"], found["words"]) == (PARSED, 3, 23)
    assert found["rules"]["gold"]["NOUN → DET"] == 8
    # a model that reads trees is compared with the same trees, and reads its own in any case
    reader = report(project, "reader", "--head", "1.1")
    assert reader["gold"] == f"{PARSED}, as the model reads it"
    assert list(accuracies(reader).values())[1:] == list(accuracies(found).values())[1:]
    other = report(project, "reader", "--head", "1.1", "--parser", "compact")
    assert (other["gold"], other["tables"]) == (PARSED, reader["tables"])
    # one without a recorded parser reads the gold trees
    assert len(accuracies(report(project, "pascal", *GOLD, "--head", "1.1"))) == 3


def test_all_heads_can_be_read_and_the_best_is_shown(project):
    found = report(project, "plain", *GOLD, "--head", "all")
    rows = accuracies(found)
    assert len(rows) == 8 + 2
    best = max(list(rows)[:8], key=lambda name: rows[name]["DA"])
    assert best in found["tables"][1]["rows"][0]
    one = report(project, "plain", *GOLD, "--head", best.removeprefix("head "))
    assert accuracies(one)[best] == rows[best]


def test_trees_of_the_target_are_those_of_the_references(project):
    found = report(project, "dbsa", "--side", "target", "--gold", "de.conllu")
    assert list(accuracies(found))[:2] == ["head 1.1 (dbsa)", "head 1.2 (dbsa)"]
    assert (found["gold"], found["words"]) == ("gold, de.conllu", 22)


def test_sentences_are_drawn_on_the_terminal_and_into_the_run(project):
    shown, _ = output(project, "lisa", *GOLD, "--draw", "2")
    assert [f"sentence {n}, head 1.1 (lisa)" in shown for n in (1, 2, 3)] == [1, 1, 0]
    assert "- wrong, with the right parent\n" in shown
    svg = ElementTree.parse(project / "runs/lisa/analysis/trees-source-head-1.1.svg").getroot()
    assert len([one for one in svg.iter() if one.get("class") == "word"]) == 2 * (5 + 9)
    more = ("--side", "target", "--gold", "de.conllu", "--draw", "9")
    output(project, "dbsa", *more, "--plot", "trees.svg", "--html", "drawn.html")
    assert ElementTree.parse(project / "trees.svg").getroot() is not None
    assert (project / "drawn.html").read_text(encoding="utf-8").count("<img ") == 3


def test_sentences_that_cannot_be_compared_are_left_out_and_counted(project):
    more = ("--gold", "odd.conllu", "--head", "1.1", "--draw", "3")
    shown, remarks = output(project, "plain", *more)
    assert "in 2 sentences" in shown
    assert "sentences left out: 1 too long, 1 empty" in remarks
    assert "sentence 4, head 1.1" in shown


IMPOSSIBLE = """
lisa => --side sources => 2 => 'sources' is not one of 'source', 'target'
lisa => --plot x.svg => 2 => --plot x.svg: trees are drawn with `--draw N`, as SVG
lisa => --plot x.png --draw 1 => 2 => --plot x.png: trees are drawn with `--draw N`, as SVG
lisa => --gold none.conllu => 1 => none.conllu: cannot read the file
lisa => --gold empty.conllu => 1 => gold, empty.conllu: there are no words to compare
lisa => --gold dots.conllu => 1 => gold, dots.conllu: there are no words to compare
plain => --gold long.conllu --head 1.1 => 1 => there are no words to compare: all
dbsa => --side target --gold en.conllu => 1 => tree does not match the text: word
dbsa => --side target => 1 => Stanza models for 'de'
lisa => --parser none => 1 => none: Stanza models for 'en' not found
pascal => --head 1.1 => 2 => parser, or give the trees of the text with `--gold FILE
plain => => 2 => runs/plain: nothing in this model has learned trees of the source
"""


@pytest.mark.parametrize(("name", "arguments", "code", "words"), cases(IMPOSSIBLE))
def test_impossible_options_are_refused_with_one_sentence(
    project, tmp_path, monkeypatch, name, arguments, code, words
):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    printed, errors = output(project, name, *arguments.split(), code=int(code))
    assert printed == ""
    assert words in errors
