"""`synmt analyze --trees` on runs of small models."""

import json
import re
import shutil
from xml.etree import ElementTree

import pytest
from small_run import LSTM, PASCAL, TEXT, make_run, write_tests
from tiny import analyze, chain_of

from synmt.parsing.models import COMPACT
from synmt.syntax.conllu import format_conllu

pytestmark = pytest.mark.journey

SOURCE, REFERENCE = TEXT[:3], TEXT[3:]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Six runs with random weights, and chains as the gold trees of both sides."""
    project = tmp_path_factory.mktemp("project")
    dbsa = [
        {"name": "dbsa", "layers": [2]},
        {"name": "dbsa", "layers": [1], "heads": 2, "side": "target"},
    ]
    for name, variants in (("lisa", [{"name": "lisa"}]), ("dbsa", dbsa), ("reader", [PASCAL])):
        write_tests(make_run(project / "runs" / name, *variants), SOURCE, REFERENCE)
    plain = write_tests(make_run(project / "runs" / "plain", max_pieces=16), SOURCE, REFERENCE)
    write_tests(plain, SOURCE, REFERENCE, test="other")
    make_run(project / "runs" / "pascal", PASCAL, parser=False)
    make_run(project / "runs" / "flat", {"name": "latent_tree", "normalize": "flat"}, model=LSTM)
    for name, lines in (("en", SOURCE), ("de", REFERENCE)):
        blocks = (
            format_conllu(chain_of(line), line, number) for number, line in enumerate(lines, 1)
        )
        (project / f"{name}.conllu").write_text("".join(blocks), encoding="utf-8")
    return project


def output(project, name, *arguments, code=0):
    return analyze("--trees", "--run", f"runs/{name}", *arguments, code=code, cwd=project)


def report(project, name, *arguments):
    return json.loads(output(project, name, *arguments, "--json")[0])


def test_a_supervised_head_is_listed_above_the_baselines(project):
    shown, said = output(project, "lisa", "--gold", "en.conllu")
    lines = shown.splitlines()
    assert lines[0] == "lisa: trees of the source; gold, en.conllu"
    assert lines[2] == "23 words without punctuation in 3 sentences"
    rows = [re.split(r"  +", line) for line in lines]
    assert ["trees", "DA", "95 % of DA", "UA", "95 % of UA", "top choice"] in rows
    at = [row[0] for row in rows].index("head 1.1 (lisa)")
    assert rows[at + 1] == [
        "left branching",
        "100.0%",
        "100.0% to 100.0%",
        "100.0%",
        "100.0% to 100.0%",
    ]
    assert rows[at + 2][:2] == ["right branching", "0.0%"]
    assert "compared with: gold, en.conllu" in said
    assert next(row for row in rows if row[0] == "next")[1] == "20"


def test_without_gold_trees_the_test_set_is_parsed_by_the_parser_of_the_run(project):
    found = json.loads(output(project, "lisa", "--json", "--html", "trees.html")[0])
    assert found["gold"] == "the test set, parsed by Stanza (compact, en)"
    assert (found["test"], found["parser"]) == ("test", "Stanza (compact, en)")
    # without the three full stops, which the parser splits off
    assert (found["sentences"], found["words"]) == (3, 23)
    assert "det" in found["rows"][0]["relations"]
    assert found["gold_children"]["NOUN"]["DET"] == 8
    # a chain of W words has W - 1 arcs
    assert [
        sum(sum(tags.values()) for tags in row["children"].values()) for row in found["rows"][1:]
    ] == [20, 20]
    page = (project / "trees.html").read_text(encoding="utf-8")
    assert (
        "<h2>lisa: trees of the source; the test set, parsed by Stanza (compact, en)</h2>" in page
    )
    assert '<th scope="col">parent → child</th><th scope="col">gold</th>' in page
    assert '<th scope="row">NOUN → DET</th>' in page


def test_a_model_that_reads_trees_is_compared_with_the_same_trees(project):
    found = report(project, "reader", "--head", "1.1")
    assert found["gold"] == "the test set, parsed by Stanza (compact, en), as the model reads it"
    lisa, reader = (report(project, name, "--head", "1.1")["rows"] for name in ("lisa", "reader"))
    # the baselines are compared with the same trees
    assert reader[1:] == lisa[1:]


def test_json_has_everything_in_the_tables_and_all_relations(project):
    found = report(project, "dbsa", "--gold", "en.conllu")
    head, left, right = found["rows"]
    assert (head["trees"], head["variant"], head["layer"], head["head"]) == (
        "head 2.1 (dbsa)",
        "dbsa",
        2,
        1,
    )
    assert (left["trees"], left["layer"], left["top_choice"]) == ("left branching", None, None)
    assert left["directed"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert right["undirected"]["value"] == left["undirected"]["value"] - 3 / 23
    for row in found["rows"]:
        counted = sum(one["words"] * one["directed"] for one in row["relations"].values())
        assert counted == pytest.approx(23 * row["directed"]["value"])
    assert (found["best"], found["side"], found["system"]) == ("head 2.1 (dbsa)", "source", "dbsa")
    assert found["left_out"] == {"too_long": 0, "empty": 0}
    assert (found["gold"], found["test"], found["parser"]) == ("gold, en.conllu", None, None)


def test_all_heads_can_be_read_and_the_best_is_marked(project):
    found = report(project, "plain", "--gold", "en.conllu", "--head", "all")
    heads = [row for row in found["rows"] if row["layer"]]
    assert [(row["layer"], row["head"]) for row in heads] == [
        (layer, head) for layer in (1, 2) for head in range(1, 5)
    ]
    best = max(heads, key=lambda row: row["directed"]["value"])
    assert found["best"] == best["trees"]
    shown, _ = output(project, "plain", "--gold", "en.conllu", "--head", "all")
    assert f"\n{best['trees']} *  " in shown
    one = report(
        project, "plain", "--gold", "en.conllu", "--head", f"{best['layer']}.{best['head']}"
    )
    assert one["rows"][0] == best


def test_trees_of_the_target_are_those_of_the_references(project):
    found = report(project, "dbsa", "--side", "target", "--gold", "de.conllu")
    assert [row["trees"] for row in found["rows"][:2]] == ["head 1.1 (dbsa)", "head 1.2 (dbsa)"]
    assert (found["side"], found["words"]) == ("target", 22)
    assert (found["gold"], found["test"], found["parser"]) == ("gold, de.conllu", "test", None)
    _, said = output(project, "dbsa", "--side", "target", "--gold", "en.conllu", code=1)
    assert "does not match line 1 of the text at token 1 ('The')" in said


def test_a_language_without_a_parser_needs_given_trees(project, tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    _, said = output(project, "dbsa", "--side", "target", code=1)
    assert "stanza.download('de')" in said
    assert said.startswith("synmt: error: no Stanza model for 'de' to parse the target (")
    named = (
        "Name one with `--parser FOLDER` (or `target_parser.model` in the recipe), or give "
        "trees with `--gold"
    )
    assert named in said


def test_with_another_parser_the_model_still_reads_its_own_trees(project):
    found = report(project, "reader", "--head", "1.1", "--parser", "compact")
    assert found["gold"] == "the test set, parsed by Stanza (compact, en)"
    # both parsers are the same here, and so are the trees
    assert found["rows"] == report(project, "reader", "--head", "1.1")["rows"]
    _, said = output(project, "reader", "--head", "1.1", "--parser", "none", code=1)
    assert said.startswith("synmt: error: no Stanza model for 'en' to parse the source (")


def test_the_target_is_parsed_with_the_model_of_a_folder(project):
    # tests have no German model: the folder lists the English one as German
    folder = project / "my-stanza"
    folder.mkdir()
    (folder / "de").symlink_to(COMPACT / "en")
    models = json.loads((COMPACT / "resources.json").read_text(encoding="utf-8"))
    (folder / "resources.json").write_text(json.dumps({"de": models["en"]}), encoding="utf-8")
    found = report(project, "dbsa", "--side", "target", "--parser", "my-stanza")
    assert (found["parser"], found["sentences"]) == ("Stanza (my-stanza, de)", 3)


def test_the_columns_are_explained(project):
    shown, _ = output(project, "lisa")
    assert "\nDA: directed attachment accuracy" in shown
    assert "\ngold trees come from a parser, which makes errors: Stanza (compact, en)\n" in shown
    assert "selected on these sentences" not in shown
    shown, _ = output(project, "plain", "--gold", "en.conllu", "--head", "all")
    assert "come from a parser" not in shown
    assert "\n*: the best, selected on these sentences" in shown


def test_sentences_are_drawn_on_the_terminal_and_into_the_run(project):
    shown, said = output(project, "lisa", "--gold", "en.conllu", "--draw", "2")
    assert "\nsentence 1, lisa, head 1.1 (lisa)\n1 The" in shown
    assert "sentence 2, lisa, head 1.1 (lisa)" in shown
    assert "sentence 3" not in shown
    assert "* root" in shown
    assert "\x1b" not in shown
    assert "trees: runs/lisa/analysis/trees-head-1.1.svg" in said
    svg = ElementTree.parse(project / "runs" / "lisa" / "analysis" / "trees-head-1.1.svg").getroot()
    words = [element.text for element in svg.iter() if element.get("class") == "word"]
    assert words == [word for line in SOURCE[:2] for word in chain_of(line).words]


def test_trees_are_shown_if_the_run_cannot_be_written(project):
    folder = project / "runs" / "lisa" / "analysis"
    shutil.rmtree(folder, ignore_errors=True)
    # root may write everywhere, but not into a file
    folder.touch()
    try:
        shown, said = output(project, "lisa", "--gold", "en.conllu", "--draw", "1")
    finally:
        folder.unlink()
    assert "\nsentence 1, lisa, head 1.1 (lisa)\n1 The" in shown
    assert "the trees were not drawn as SVG" in said


@pytest.mark.parametrize(("trees", "kind"), [(("--gold", "en.conllu"), "gold"), ((), "parser's")])
def test_the_key_of_a_drawing_says_whose_trees_are_below(project, trees, kind):
    shown, _ = output(project, "lisa", *trees, "--draw", "1", "--plot", "key.svg")
    assert shown.endswith(f"- wrong, with the {kind} parent\n")
    assert f"below: the {kind} tree<" in (project / "key.svg").read_text(encoding="utf-8").replace(
        "&#x27;", "'"
    )


def test_flat_attention_is_read_as_trees_and_called_flat_attention(project):
    shown, said = output(project, "flat", "--gold", "en.conllu", "--draw", "1")
    assert "\nflat attention (latent_tree) " in shown
    assert "latent trees" not in shown
    assert "trees: runs/flat/analysis/trees-flat.svg" in said


def test_a_drawing_goes_to_the_plot_file_and_json_is_still_printed(project):
    more = ("--gold", "de.conllu", "--side", "target", "--draw", "9")
    for remark in ("trees: trees.svg\n", "trees: trees.svg (replaced)"):
        printed, said = output(project, "dbsa", *more, "--plot", "trees.svg", "--json")
        assert json.loads(printed)["sentences"] == 3
        assert remark in said
    assert (project / "trees.svg").read_text(encoding="utf-8").count('class="title"') == 1 + 3
    output(project, "dbsa", *more)
    assert (
        len(list((project / "runs" / "dbsa" / "analysis").glob("trees-target-head-1.?.svg"))) == 1
    )


def test_sentences_that_cannot_be_compared_are_left_out_and_counted(project):
    long = " ".join(["girl"] * 30)
    blocks = [format_conllu(chain_of(line), line, 1) for line in (SOURCE[0], long, "The boys")]
    blocks.insert(1, "# text = \n\n")
    (project / "odd.conllu").write_text("".join(blocks), encoding="utf-8")
    shown, said = output(project, "plain", "--gold", "odd.conllu", "--head", "1.1", "--draw", "3")
    assert "in 2 sentences" in shown
    assert "sentences left out: 1 with more pieces than the model takes, 1 without words" in said
    assert "sentence 4, plain, head 1.1" in shown
    (project / "long.conllu").write_text(blocks[2], encoding="utf-8")
    shown, said = output(
        project, "plain", "--gold", "long.conllu", "--head", "1.1", "--draw", "1", code=1
    )
    assert shown == ""
    assert "there are no sentences to compare" in said


def test_a_model_that_reads_trees_without_a_recorded_parser_reads_gold_trees(project):
    assert len(report(project, "pascal", "--gold", "en.conllu", "--head", "1.1")["rows"]) == 3
    _, said = output(project, "pascal", "--head", "1.1", code=2)
    assert (
        "does not say which parser makes them. Give text and trees with `--gold FILE.conllu`"
        in said
    )


def test_other_test_sets_are_listed(project):
    assert "choose another one with --test: other" in output(project, "plain", "--head", "1.1")[1]
    assert report(project, "plain", "--head", "1.1", "--test", "other")["gold"].startswith(
        "test set other, parsed by"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "code", "said"),
    [
        (
            "lisa",
            ["--side", "sources"],
            2,
            "there is no side 'sources'. Sides: source, target. Did you mean 'source'?",
        ),
        ("lisa", ["--plot", "x.svg"], 2, "`--plot` needs a number of sentences. Add `--draw N`"),
        (
            "lisa",
            ["--plot", "x.png", "--draw", "1"],
            2,
            "trees are drawn as SVG. Write `--plot x.svg`",
        ),
        ("lisa", ["--gold", "en.conllu", "--test", "test"], 2, "`--gold` has its own sentences"),
        ("lisa", ["--gold", "en.conllu", "--parser", "compact"], 2, "`--gold` has its own trees"),
        ("lisa", ["--gold", "none.conllu"], 1, "none.conllu: cannot read the file"),
        ("lisa", ["--gold", "empty.conllu"], 1, "empty.conllu: no sentence has words"),
        ("lisa", ["--gold", "dots.conllu"], 1, "all words are punctuation"),
        (
            "lisa",
            ["--head", "2.9"],
            2,
            "'2.9' is not a head. LAYER.HEAD: 1.1 to 1.4, 2.1 to 2.4; or `all`",
        ),
        ("plain", [], 2, "runs/plain: nothing in this model has learned trees of the source"),
    ],
)
def test_impossible_options_are_refused_with_one_sentence(project, name, arguments, code, said):
    (project / "empty.conllu").write_text("# text = \n\n")
    (project / "dots.conllu").write_text("# text = .\n1\t.\t_\tPUNCT\t_\t_\t0\troot\t_\t_\n\n")
    printed, errors = output(project, name, *arguments, code=code)
    assert printed == ""
    assert said in errors
