"""`synmt score` as a user runs it."""

import json
import os
from pathlib import Path

import pytest
import sacrebleu
import typer
from scored import FIRST, REFERENCES, SECOND
from small_run import make_run, write_tests
from tiny import write_lines
from typer.testing import CliRunner

from synmt.cli import ListCommand, console
from synmt.cli.score import score
from synmt.errors import SynmtError
from synmt.evaluation.contrast.report import ContrastOptions
from synmt.evaluation.metrics import METRICS, MeanMetric
from synmt.evaluation.model_scores import PairOptions
from synmt.evaluation.significance import FEW_SEEDS
from synmt.files.reading import read_lines

pytestmark = pytest.mark.journey

APP = typer.Typer()
APP.command(cls=ListCommand)(score)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The current folder, with references and two translations."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("ref.de", REFERENCES), ("one.de", FIRST), ("two.de", SECOND)):
        write_lines(tmp_path / name, lines)
    return tmp_path


def run(*arguments, stdin=None):
    console.configure()
    return CliRunner().invoke(APP, [str(argument) for argument in arguments], input=stdin)


def score_files(*arguments, **options):
    return run("-r", "ref.de", *arguments, **options)


def report(*arguments, **options):
    result = run(*arguments, "--json", **options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def rows_of(*arguments, table=0, **options):
    return report("-r", "ref.de", *arguments, **options)["tables"][table]["rows"]


def test_the_table_has_every_number_and_its_signature(files):
    result = score_files("one.de")
    assert result.exit_code == 0, result.output
    bleu = sacrebleu.corpus_bleu(FIRST, [REFERENCES])
    lines = result.stdout.splitlines()
    rows = [line.split() for line in lines]
    assert "systems: 1, sentences: 3" in lines
    assert ["one.de", "BLEU", f"{bleu.score:.2f}"] in [row[:3] for row in rows]
    for start in ("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|", "chrF2|nrefs:1|", "TER|nrefs:1|"):
        assert any(line.startswith(start) for line in lines)
    components = [f"{value:.2f}" for value in (bleu.score, *bleu.precisions, bleu.bp)]
    assert ["one.de", "one.de", "BLEU", *components] in [row[:-1] for row in rows]


def test_json_compares_every_further_system_with_the_first(files):
    found = rows_of("one.de", "two.de", "-m", "chrf,bleu")
    assert [row["metric"] for row in found] == ["chrF2", "chrF2", "BLEU", "BLEU"]
    first, second = found[:2]
    assert first["difference"] is first["95 % of difference"] is None
    assert second["difference"] == second["score"] - first["score"]
    assert {"bootstrap p", "randomization p"} == {name for name in second if name[-2:] == " p"}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("pascal.seed*.de", "pascal.seed*.de"),
        ("pascal.seed1.de pascal.seed2.de --seeds", "pascal.de"),
    ],
)
def test_seeds_are_grouped_by_a_pattern_or_by_their_names(files, given, name):
    for number, lines in enumerate((FIRST, SECOND), 1):
        write_lines(files / f"pascal.seed{number}.de", lines)
    whole = report("-r", "ref.de", "one.de", *given.split(), "-m", "chrf")
    (_, system), (base, *seeds) = (table["rows"] for table in whole["tables"])
    one, other = (sacrebleu.corpus_chrf(lines, [REFERENCES]).score for lines in (FIRST, SECOND))
    assert (system["system"], base["seed"]) == (name, "one.de")
    assert [row["seed"] for row in seeds] == ["pascal.seed1.de", "pascal.seed2.de"]
    assert [row["score"] for row in seeds] == [one, other]
    assert system["score"] == pytest.approx((one + other) / 2)
    assert system["difference"] == pytest.approx((other - one) / 2)
    assert "seeds p" not in system


def test_two_systems_with_seeds_get_a_test_of_the_seeds(files):
    texts = {"a.1": FIRST, "a.2": SECOND, "b.0": SECOND, "b.1": REFERENCES, "b.2": SECOND}
    for name, lines in texts.items():
        write_lines(files / name, lines)
    result = score_files("a.*", "b.*", "-m", "bleu", "--samples", 200)
    assert result.exit_code == 0, result.output
    assert "seeds p: Welch's t-test of the seeds' scores" in result.stdout
    assert f"{FEW_SEEDS}\n" in result.stdout


def write_run(folder, *variants, lines, **sections):
    """Make a run with translations of the references."""
    write_tests(
        make_run(folder, *variants, parser=False, **sections), ["a", "b", "c"], REFERENCES, lines
    )


def test_a_run_has_its_reference_its_source_and_its_metric_options(tmp_path):
    runs = base, pascal = tmp_path / "base", tmp_path / "pascal"
    for folder, lines in zip(runs, (FIRST, SECOND), strict=True):
        write_run(folder, lines=lines, evaluation={"tokenize": "char"})
    whole = report(*runs, "-m", "bleu", "--sentences", tmp_path / "all.jsonl")
    found = whole["tables"][0]["rows"]
    assert [one["system"] for one in found] == ["base", "pascal"]
    expected = sacrebleu.corpus_bleu(SECOND, [REFERENCES], tokenize="char").score
    assert found[1]["score"] == expected
    assert list((base / "tests/test/segments").iterdir())
    first = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])
    assert (first["source"], first["reference"]) == ("a", REFERENCES[0])
    other = write_lines(pascal / "tests/test/reference.txt", "xyz")
    refused = str(run(*runs, "-m", "bleu").exception)
    assert "is not that of base" in refused
    assert run("-r", other, *runs, "-m", "bleu").exit_code == 0


def test_sentences_are_a_row_for_each_segment(files):
    given = ("one.de", "two.de", "-m", "bleu,ter", "--sentences")
    for name in ("all.tsv.gz", "all.jsonl"):
        assert score_files(*given, name).exit_code == 0
    found = [json.loads(row) for row in read_lines(files / "all.jsonl", allowed=["JSON"])]
    assert [one["systems"][1]["translation"] for one in found] == SECOND
    header, *rows = (row.split("\t") for row in read_lines(files / "all.tsv.gz"))
    assert header == ["line", "one.de:bleu", "one.de:ter", "two.de:bleu", "two.de:ter"]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    ter = [one["systems"][0]["scores"]["ter"] for one in found]
    assert [float(row[2]) for row in rows] == pytest.approx(ter, abs=1e-6)
    assert ter[1] == pytest.approx(sacrebleu.sentence_ter(FIRST[1], [REFERENCES[1]]).score)
    bleu = sacrebleu.sentence_bleu(SECOND[1], [REFERENCES[1]]).score
    assert float(rows[1][3]) == pytest.approx(bleu, abs=1e-6)


class Copied(MeanMetric):
    """Score a translation by how many of its words the source has."""

    title, signature, reads_source = "copied words", "none", True

    def __init__(self, options):
        self.options = options

    def score_segments(self, hypotheses, references, sources):
        words = [
            ({*one.split()}, {*other.split()})
            for one, other in zip(hypotheses, sources, strict=True)
        ]
        return [100 * len(one & other) / max(1, len(one)) for one, other in words]


def test_a_metric_that_reads_the_source_gets_it(files, monkeypatch):
    monkeypatch.setitem(METRICS, "copied", f"{__name__}:Copied")
    write_lines(files / "src.en", ["Der monkey", "Er sleeps", "Yes"])
    [found] = rows_of("one.de", "-s", "src.en", "-m", "copied")
    # 1 of 5 words, 1 of 3, 0 of 1
    assert found["score"] == pytest.approx((20 + 100 / 3) / 3)
    write_lines(files / "src.en", ["Der monkey"])
    wrong = score_files("one.de", "-s", "src.en", "-m", "copied")
    assert "src.en: 1 lines, but" in str(wrong.exception)


REFUSED = """
| there is nothing to score
one.de | the reference is missing. Give it: `--reference FILE`
runs/plain | runs/plain: no such file or run folder
-r ref.de no.* | no.*: no such file or run folder
-r ref.de - - | standard input can be read only once
-r ref.de one.de --tests wilcoxon | there is no test 'wilcoxon'
-r ref.de one.de -m copied | copied words needs the source
-r ref.de . --seeds | .: not a run folder
-r ref.de / --seeds | /: not a run folder
--contrast controlled | --contrast needs a model. Add `--run RUN`
--run runs/a | runs/a: no such file or run folder
--run a --target t | --target needs --source
--run a --contrast controlled -m bleu | does not apply to --contrast. Leave it out
--run a --source s --target t --cost | --cost does not apply to --target
--run a --source s --target t --contrast c | --target does not apply to --contrast
a.de --run a --source s --target t | does not apply to --target
--run a --device cpu | --device does not apply to translations
--model a b --source s --target t | --target needs --source and one model
--model a --source - --target - | read only once, not by source and target
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_options_that_do_not_belong_together_are_refused(files, monkeypatch, line):
    monkeypatch.setitem(METRICS, "copied", f"{__name__}:Copied")
    options, message = line.split("| ")
    result = run(*options.split())
    assert isinstance(result.exception, SynmtError), result.output
    assert message in str(result.exception)


MODELS = """
--run a b --contrast controlled --batch-size 8 --json
--model a --source a.en --target a.de --checkpoint best --parses a.conllu
--model a --contrast controlled --samples 50 --seed 3 --device cpu
"""


def test_models_get_every_option(monkeypatch):
    options = []
    # both raise: what they return is not printed
    for function in ("contrast.report.judge_models", "model_scores.score_files"):
        monkeypatch.setattr(
            f"synmt.evaluation.{function}", lambda one: options.append(one) or 1 / 0
        )
    for line in MODELS.strip().splitlines():
        run(*line.split())
    a, contrast = Path("a"), ["controlled"]
    texts = {"source": Path("a.en"), "target": Path("a.de"), "parses": Path("a.conllu")}
    chosen = {"samples": 50, "seed": 3, "device": "cpu"}
    assert options == [
        ContrastOptions(models=[a, Path("b")], contrast=contrast, batch_size=8),
        PairOptions(model=a, **texts, checkpoint="best"),
        ContrastOptions(models=[a], contrast=contrast, **chosen),
    ]


def test_the_figures_of_the_pascal_paper_come_out(nc11):
    truth, base, pascal = map(nc11, ("truth", "transformer.preds", "transformer_pascal.preds"))
    whole = report("-r", truth, base, pascal, "-m", "bleu", "--tests", "bootstrap,randomization,t")
    first, second = whole["tables"][0]["rows"]
    assert max(second[f"{test} p"] for test in ("bootstrap", "randomization", "t")) < 0.01
    # as `sacrebleu truth -i base pascal --metrics bleu --paired-ar` prints
    assert (f"{first['score']:.2f}", f"{second['score']:.2f}") == ("24.96", "25.93")


def test_a_name_that_is_not_utf8_is_shown_on_one_line(files):
    name = os.fsdecode(b"latin-\xe9.de")
    write_lines(files / name, FIRST)
    assert r"\nlatin-\xe9.de " in score_files(name, "-m", "chrf").stdout.replace("\n", r"\n")
