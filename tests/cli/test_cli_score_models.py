"""`synmt score --target` and `--contrast` as a user runs it."""

import json
import math

import pytest
import typer
from small_run import PASCAL, TEXT, make_run
from tiny import write_lines
from typer.testing import CliRunner

from synmt.cli import console
from synmt.cli.score import score
from synmt.controlled import corpus as controlled
from synmt.decode.pairs import score_pairs
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.run_folder import Run
from synmt.syntax.conllu import format_conllu
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey

APP = typer.Typer()
APP.command()(score)
SOURCES, TARGETS = [TEXT[0], "", TEXT[1]], [TEXT[3], "Ein Hund", TEXT[4]]


def ask(*, models=(), contrast=(), as_json=False, **options):
    """Run it; what it raises is raised."""
    console.configure()
    lists = [("model", one) for one in models] + [("contrast", one) for one in contrast]
    options = {"device": "cpu", "samples": 200, "seed": 1, **options}
    arguments = [
        part for name, value in [*lists, *options.items()] for part in (f"--{name}", str(value))
    ]
    result = CliRunner().invoke(APP, arguments + ["--json"] * as_json, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("work")
    make_run(place / "one", parser=False)
    make_run(place / "two", PASCAL, parser=False)
    write_lines(place / "source.en", SOURCES)
    write_lines(place / "target.de", TARGETS)
    for name, lines in (("src.en", [TEXT[0], TEXT[1]]), ("correct.de", [TEXT[3], TEXT[4]])):
        write_lines(place / "set" / name, lines)
    write_lines(
        place / "set" / "incorrect.de",
        [TEXT[3].replace("isst", "essen"), TEXT[4].replace("sieht", "sehen")],
    )
    return place


def trees(path, lines):
    blocks = (
        format_conllu(flat_parse(line), line, number) for number, line in enumerate(lines, start=1)
    )
    path.write_text("".join(blocks), encoding="utf-8")
    return path


def pairs_of(folder, run="one", **options):
    return ask(
        models=[folder / run], source=folder / "source.en", target=folder / "target.de", **options
    )


def test_each_pair_is_a_line_of_json_in_its_order(folder):
    result = pairs_of(folder)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    written = [(one["line"], one["source"], one["target"]) for one in found]
    assert written == list(zip((1, 2, 3), SOURCES, TARGETS, strict=True))
    translator = Translator.load(Run(folder / "one"))
    for one, expected in zip(found, score_pairs(translator, SOURCES, TARGETS), strict=True):
        assert one["log_probability"] == pytest.approx(expected.log_probability)
        assert (one["pieces"], len(one["tokens"])) == (expected.pieces, expected.pieces)
        assert one["perplexity"] == pytest.approx(expected.perplexity)
    assert found[1]["log_probability"] is found[1]["perplexity"] is None
    assert found[0]["tokens"][-1].keys() == {"text", "start", "end", "log_probability"}
    assert "1 pair is not in the summary" in result.stderr


def test_the_summary_is_the_sum_of_the_pairs(folder):
    lines = [json.loads(line) for line in pairs_of(folder).stdout.splitlines()]
    report = json.loads(pairs_of(folder, as_json=True).stdout)
    assert report["pairs"] == lines
    summary, whole = report["summary"], [one for one in lines if one["tokens"]]
    assert (summary["model"], summary["pairs"], summary["left_out"]) == ("one", 2, 1)
    nats = sum(one["log_probability"] for one in whole)
    assert summary["mean_log_probability"] == pytest.approx(nats / 2)
    counts = {
        "piece": sum(one["pieces"] for one in whole),
        "word": sum(len(one["target"].split()) + 1 for one in whole),
        "character": sum(len(one["target"]) + 1 for one in whole),
    }
    for unit, count in counts.items():
        assert summary[f"{unit}s"] == count
        assert summary[f"perplexity_by_{unit}"] == pytest.approx(math.exp(-nats / count))


def test_the_table_of_the_summary_is_not_on_stdout(folder):
    result = pairs_of(folder)
    assert "perplexity by word" in result.stderr
    assert "perplexity by word" not in result.stdout


def test_options_of_resamples_have_no_effect_on_pairs_and_are_named(folder):
    errors = pairs_of(folder).stderr
    assert (
        "--samples has no effect without --contrast\n--seed has no effect without --contrast\n"
        in errors
    )
    # only differences between models are resampled
    why = "no effect without a second --run\n"
    assert (
        f"--samples has {why}--seed has {why}"
        in ask(models=[folder / "one"], contrast=[str(folder / "set")]).stderr
    )
    both = [folder / "one", folder / "one"]
    assert "no effect" not in ask(models=both, contrast=[str(folder / "set")]).stderr


def test_lines_that_are_too_long_are_named(folder):
    if not (folder / "short").exists():
        make_run(folder / "short", parser=False, max_pieces=6)
    result = pairs_of(folder, "short")
    assert "the source of line 1 has" in result.stderr
    assert "the target of line 3 has" in result.stderr
    assert "the model takes 6 (filters.max_pieces)" in result.stderr
    assert json.loads(result.stdout.splitlines()[0])["dropped"]["source"] > 0


def test_a_model_that_reads_trees_uses_those_of_the_option(folder):
    given = trees(folder / "source.conllu", SOURCES)
    found = pairs_of(folder, "two", parses=given).stdout.splitlines()
    assert len(found) == 3
    assert "--parses makes no difference" in pairs_of(folder, parses=given).stderr
    with pytest.raises(SynmtError, match=r"--parses FILE\.conllu"):
        pairs_of(folder, "two")


def contrasts_of(folder, *models, **options):
    return ask(
        models=[folder / model for model in models or ["one"]],
        contrast=[str(folder / "set")],
        **options,
    )


def test_contrasts_are_counted_by_phenomenon_and_in_total(folder):
    report = json.loads(contrasts_of(folder, as_json=True).stdout)
    assert report["models"] == ["one"]
    won = sum(pair["models"][0]["won"] for pair in report["pairs"])
    for row in [report["total"], report["groups"]["phenomenon"][0]]:
        assert row["pairs"] == 2
        assert row["results"][0]["won"] == won
        assert row["results"][0]["accuracy"] == won / 2
    for pair in report["pairs"]:
        [model] = pair["models"]
        assert model["won"] == (model["log_probability"] > model["incorrect"][0]["log_probability"])
    shown = contrasts_of(folder).stdout
    head, *rows = [line.split() for line in shown[shown.index("phenomenon") :].splitlines()]
    assert head == ["phenomenon", "pairs", "accuracy", "95", "%", "by", "piece"]
    assert rows[0][:3] == ["set", "2", f"{50 * won:.1f}%"]
    assert rows[1][0] == "all"
    by_piece = 100 * report["total"]["results"][0]["accuracy_by_piece"]
    assert rows[1][-1] == f"{by_piece:.1f}%"
    assert f"does not favour shorter translations: one {by_piece:.1f}%\n" in shown


def test_other_models_are_compared_with_the_first(folder):
    given = trees(folder / "set.conllu", [TEXT[0], TEXT[1]])
    report = json.loads(contrasts_of(folder, "one", "two", parses=given, as_json=True).stdout)
    assert report["models"] == ["one", "two"]
    first, second = report["total"]["results"]
    [comparison] = report["total"]["comparisons"]
    assert comparison["difference"] == second["accuracy"] - first["accuracy"]
    row = report["tables"][0]["rows"][-1]
    assert (row["two"], row["two, difference"]) == (second["accuracy"], comparison["difference"])
    assert report["bootstrap"] == {"samples": 200, "seed": 1}
    shown = contrasts_of(folder, "one", "two", parses=given).stdout
    assert (
        "difference: from one, with its interval over 200 resamples of the sources, seed 1\n"
        in shown
    )
    assert "p: McNemar's exact test\n" in shown


def test_a_model_of_gold_trees_reads_those_of_the_controlled_corpus(folder, monkeypatch):
    few = controlled.generate(train=0, valid=0, test=28)
    monkeypatch.setattr(controlled, "generate", lambda **_: few)
    result = ask(models=[folder / "two"], contrast=["controlled"])
    tables = [line.split()[0] for line in result.stdout.splitlines() if " pairs  accuracy" in line]
    assert tables[:3] == ["phenomenon", "attractors", "split"]


def test_a_set_of_other_languages_gives_a_warning(folder):
    other = folder / "french"
    for name, text in (("src.fr", "Oui."), ("correct.de", "Ja."), ("incorrect.de", "Nein.")):
        write_lines(other / name, [text])
    result = ask(models=[folder / "one"], contrast=[str(other)])
    assert "translates en-de, but the contrastive set is fr-de" in result.stderr


def test_identical_pairs_give_a_warning(folder):
    write_lines(
        folder / "same.tsv",
        ["source\tcorrect\tincorrect", "A dog\tEin Hund\tEine Hund", "A dog\tEin\tEin"],
    )
    result = ask(models=[folder / "one"], contrast=[str(folder / "same.tsv")])
    assert "1 pair is left out" in result.stderr
    assert "same.tsv: line 3" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            "--device needs texts that a model scores. Add `--source FILE --target FILE`, or "
            "`--contrast PATH`",
        ),
        ({"target": "a"}, "--target needs --source"),
        ({"models": ["one", "two"], "source": "a", "target": "b"}, "one model at a time"),
        ({"source": "-", "target": "-"}, "read only once"),
        ({"contrast": ["set"], "source": "a"}, "has its own texts"),
        (
            {"contrast": ["set", "controlled"], "parses": "a"},
            "--parses needs a single --contrast set",
        ),
        ({"checkpoint": "beste", "contrast": ["set"]}, "Did you mean 'best'"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        ask(**{"models": ["one"], **options})


def test_texts_of_different_length_are_refused_before_anything_is_scored(folder):
    short = write_lines(folder / "short.de", TARGETS[:2])
    with pytest.raises(SynmtError, match=r"short.de: 2 lines, but .*source.en has 3"):
        ask(models=[folder / "one"], source=folder / "source.en", target=short)
