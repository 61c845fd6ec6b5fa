"""`synmt analyze --trees` on runs of small models."""

import json
import shutil
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


def test_a_head_is_compared_with_gold_trees_like_the_baselines(project):
    found = report(project, "lisa", *GOLD)
    expected = {"best": "head 1.1 (lisa)", "side": "source", "system": "lisa", "test": None}
    expected |= {"gold": "gold, en.conllu", "parser": None, "sentences": 3, "words": 23}
    assert expected.items() <= found.items()
    head, left, right = found["rows"]
    assert (head["variant"], head["layer"], head["head"]) == ("lisa", 1, 1)
    assert (left["trees"], left["directed"]["value"]) == ("left branching", 1.0)
    # a chain of W words has W - 1 arcs
    assert right["undirected"]["value"] == pytest.approx(20 / 23)
    for row in found["rows"]:
        correct = sum(one["words"] * one["directed"] for one in row["relations"].values())
        assert correct == pytest.approx(23 * row["directed"]["value"])


def test_without_gold_trees_the_test_set_is_parsed_by_the_parser_of_the_run(project):
    shown, _ = output(project, "lisa", "--html", "trees.html")
    assert "\ngold trees come from a parser, which makes errors: Stanza (compact, en)\n" in shown
    assert "NOUN → DET</th>" in (project / "trees.html").read_text(encoding="utf-8")
    found = report(project, "lisa")
    assert (found["gold"], found["test"], found["parser"]) == (PARSED, "test", PARSED[24:])
    # without the three full stops, which the parser splits off
    assert (found["sentences"], found["words"]) == (3, 23)
    assert found["gold_children"]["NOUN"]["DET"] == 8
    # a model that reads trees is compared with the same trees, and reads its own in any case
    reader = report(project, "reader", "--head", "1.1")
    assert reader["gold"] == f"{PARSED}, as the model reads it"
    assert reader["rows"][1:] == found["rows"][1:]
    other = report(project, "reader", "--head", "1.1", "--parser", "compact")
    assert (other["gold"], other["rows"]) == (PARSED, reader["rows"])
    # one without a recorded parser reads the gold trees
    assert len(report(project, "pascal", *GOLD, "--head", "1.1")["rows"]) == 3


def test_all_heads_can_be_read_and_the_best_is_marked(project):
    found = report(project, "plain", *GOLD, "--head", "all")
    heads = [row for row in found["rows"] if row["layer"]]
    best = max(heads, key=lambda row: row["directed"]["value"])
    assert (len(heads), found["best"]) == (8, best["trees"])
    shown, _ = output(project, "plain", *GOLD, "--head", "all")
    assert f"\n{best['trees']} *  " in shown
    one = report(project, "plain", *GOLD, "--head", f"{best['layer']}.{best['head']}")
    assert one["rows"][0] == best


def test_trees_of_the_target_are_those_of_the_references(project):
    found = report(project, "dbsa", "--side", "target", "--gold", "de.conllu")
    assert [row["trees"] for row in found["rows"][:2]] == ["head 1.1 (dbsa)", "head 1.2 (dbsa)"]
    assert (found["side"], found["words"]) == ("target", 22)
    assert (found["gold"], found["test"], found["parser"]) == ("gold, de.conllu", "test", None)


def test_sentences_are_drawn_on_the_terminal_and_into_the_run(project):
    for trees, kind in ((GOLD, "gold"), ((), "parser's")):
        shown, remarks = output(project, "lisa", *trees, "--draw", "2")
        assert [f"sentence {n}, lisa, head 1.1 (lisa)" in shown for n in (1, 2, 3)] == [1, 1, 0]
        assert shown.endswith(f"- wrong, with the {kind} parent\n")
        path = "runs/lisa/analysis/trees-head-1.1.svg"
        assert f"trees: {path}" in remarks
        svg = ElementTree.parse(project / path).getroot()
        assert f"below: the {kind} tree" in "".join(svg.itertext())
    assert len([one for one in svg.iter() if one.get("class") == "word"]) == 6 + 10
    more = ("--side", "target", "--gold", "de.conllu", "--draw", "9")
    assert "analysis/trees-target-head-1." in output(project, "dbsa", *more)[1]
    for remark in ("trees: trees.svg\n", "trees: trees.svg (replaced)"):
        assert remark in output(project, "dbsa", *more, "--plot", "trees.svg", "--json")[1]


def test_trees_are_shown_if_the_run_cannot_be_written(project):
    folder = project / "runs" / "plain" / "analysis"
    shutil.rmtree(folder, ignore_errors=True)
    # root may write everywhere, but not into a file
    folder.touch()
    shown, remarks = output(project, "plain", *GOLD, "--head", "1.1", "--draw", "1")
    folder.unlink()
    assert "\nsentence 1, plain, head 1.1\n1 The" in shown
    assert "the trees were not drawn as SVG" in remarks


def test_sentences_that_cannot_be_compared_are_left_out_and_counted(project):
    more = ("--gold", "odd.conllu", "--head", "1.1", "--draw", "3")
    shown, remarks = output(project, "plain", *more)
    assert "in 2 sentences" in shown
    assert "sentences left out: 1 with more pieces than the model takes, 1 without" in remarks
    assert "sentence 4, plain, head 1.1" in shown


IMPOSSIBLE = """
lisa => --side sources => 2 => 'sources' is not one of 'source', 'target'
lisa => --plot x.svg => 2 => `--plot` needs a number of sentences. Add `--draw N`
lisa => --plot x.png --draw 1 => 2 => trees are drawn as SVG. Write `--plot x.svg`
lisa => --gold en.conllu --test test => 2 => `--gold` has its own sentences
lisa => --gold en.conllu --parser compact => 2 => `--gold` has its own trees
lisa => --gold none.conllu => 1 => none.conllu: cannot read the file
lisa => --gold empty.conllu => 1 => empty.conllu: no sentence has words
lisa => --gold dots.conllu => 1 => gold, dots.conllu: there are no words to compare
plain => --gold long.conllu --head 1.1 => 1 => there are no words to compare: all
dbsa => --side target --gold en.conllu => 1 => does not match line 1 of the text at
dbsa => --side target => 1 => no Stanza model for 'de' to parse the target (
lisa => --parser none => 1 => no Stanza model for 'en' to parse the source (none:
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
