"""`synmt score` as a user runs it."""

import json
import os
from pathlib import Path

import pytest
import sacrebleu
import typer
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

REFERENCES = ["Der Affe isst eine Banane.", "Er schläft heute lange.", "Ja."]
FIRST = ["Der Affe isst die Banane.", "Er schläft lange.", "Nein."]
SECOND = ["Der Affe isst eine Banane.", "Er schläft heute.", "Ja."]


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


def systems(*arguments, **options):
    return report("-r", "ref.de", *arguments, **options)["systems"]


def test_the_table_has_every_number_and_its_signature(files):
    result = score_files("one.de")
    assert result.exit_code == 0, result.output
    bleu = sacrebleu.corpus_bleu(FIRST, [REFERENCES])
    lines = result.stdout.splitlines()
    rows = [line.split() for line in lines]
    assert rows[0] == ["1", "system,", "3", "sentences"]
    assert ["one.de", "BLEU", f"{bleu.score:.2f}"] in [row[:3] for row in rows]
    for start in ("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|", "chrF2|nrefs:1|", "TER|nrefs:1|"):
        assert any(line.startswith(start) for line in lines)
    components = [f"{value:.1f}" for value in bleu.precisions] + [f"{bleu.bp:.3f}"]
    assert ["one.de", *components] in [row[:-1] for row in rows]


def test_json_compares_every_further_system_with_the_first(files):
    whole = report("-r", "ref.de", "one.de", "two.de", "-m", "chrf,bleu")
    first, second = (one["scores"] for one in whole["systems"])
    assert whole["bootstrap"] == {"samples": 1000, "seed": 12345, "base": "one.de"}
    assert (list(first), first["bleu"]["comparison"]) == (["chrf", "bleu"], None)
    found = second["chrf"]
    assert found["comparison"]["difference"] == found["score"] - first["chrf"]["score"]
    assert found["p_values"].keys() == {"bootstrap", "randomization"}


def test_tokenised_text_and_empty_translations_give_a_warning_on_stderr(files):
    write_lines(files / "cut.de", ["Der Affe .", "Er .", "Ja ."])
    result = score_files("cut.de", "-m", "bleu")
    assert "cut.de looks tokenized" in result.stderr
    assert "empty" not in result.stderr
    for options in (("--tokenize", "none"), ("-m", "ribes")):
        assert "tokenized" not in score_files("cut.de", *options).stderr
    write_lines(files / "gaps.de", ["Der Affe.", "", " "])
    assert "gaps.de: 2 of 3 translations are empty" in score_files("gaps.de", "-m", "bleu").stderr


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
    base, system = systems("one.de", *given.split(), "-m", "chrf")
    one, other = (sacrebleu.corpus_chrf(lines, [REFERENCES]).score for lines in (FIRST, SECOND))
    found = system["scores"]["chrf"]
    assert (system["system"], base["seeds"]) == (name, ["one.de"])
    assert system["seeds"] == ["pascal.seed1.de", "pascal.seed2.de"]
    assert found["seeds"]["scores"] == [one, other]
    assert found["score"] == found["seeds"]["mean"] == pytest.approx((one + other) / 2)
    assert found["difference"] == pytest.approx((other - one) / 2)
    assert found["p_values"]["seeds"] is None


def test_two_systems_with_seeds_get_a_test_of_the_seeds(files):
    texts = {"a.1": FIRST, "a.2": SECOND, "b.0": SECOND, "b.1": REFERENCES, "b.2": SECOND}
    for name, lines in texts.items():
        write_lines(files / name, lines)
    result = score_files("a.*", "b.*", "-m", "bleu", "--samples", 200)
    assert result.exit_code == 0, result.output
    assert "seeds p: Welch's t-test of the seeds' scores" in result.stdout
    assert f"{FEW_SEEDS}\n" in result.stdout
    _, *rows = result.stdout[result.stdout.index("seeds   mean") :].splitlines()[:3]
    assert [row.split()[2] for row in rows] == ["2", "3"]


def write_run(folder, *variants, lines, **sections):
    """Make a run with translations of the references."""
    write_tests(
        make_run(folder, *variants, parser=False, **sections), ["a", "b", "c"], REFERENCES, lines
    )


def test_a_run_has_its_reference_its_source_and_its_metric_options(tmp_path):
    runs = base, pascal = tmp_path / "base", tmp_path / "pascal"
    for folder, lines in zip(runs, (FIRST, SECOND), strict=True):
        write_run(folder, lines=lines, evaluation={"tokenize": "char"})
    found = report(*runs, "-m", "bleu", "--sentences", tmp_path / "all.jsonl")["systems"]
    assert [one["system"] for one in found] == ["base", "pascal"]
    expected = sacrebleu.corpus_bleu(SECOND, [REFERENCES], tokenize="char").score
    assert found[1]["scores"]["bleu"]["score"] == expected
    assert list((base / "tests/test/segments").iterdir())
    first = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])
    assert (first["source"], first["reference"]) == ("a", REFERENCES[0])
    other = write_lines(pascal / "tests/test/reference.txt", "xyz")
    refused = str(run(*runs, "-m", "bleu").exception)
    assert "is not that of base: line 1 of the references differs" in refused
    assert run("-r", other, *runs, "-m", "bleu").exit_code == 0


def test_the_matches_of_a_pattern_are_listed(tmp_path):
    for number, lines in ((1, FIRST), (2, SECOND)):
        write_run(tmp_path / f"pascal-{number}", lines=lines, training={"seed": number})
    result = run(tmp_path / "pascal-1", tmp_path / "pascal*", "-m", "chrf", "--samples", 50)
    assert result.exit_code == 0, result.output
    assert result.stderr.count(f"{tmp_path / 'pascal*'}: 2 seeds: pascal-1, pascal-2\n") == 1
    assert "1 seed" not in result.stderr


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


WITHOUT_EFFECT = """
--tests t | there is only one system, so --tests has no effect
--tokenize zh | --tokenize has no effect without the metric bleu or bleu1
--cased | --lowercase/--cased has no effect without
--beer x | --beer has no effect without the metric beer
"""


@pytest.mark.parametrize("given", [["t*.tsv"], ["one.de", "-r", "./two.tsv"]])
def test_scores_of_sentences_never_replace_an_input(files, given):
    (files / "two.tsv").write_text((files / "two.de").read_text())
    reference = [] if "-r" in given else ["-r", "ref.de"]
    result = run(*reference, *given, "--sentences", "two.tsv")
    assert "two.tsv: the scores of sentences would replace the input" in str(result.exception)
    assert (files / "two.tsv").read_text() == (files / "two.de").read_text()


@pytest.mark.parametrize("line", WITHOUT_EFFECT.strip().splitlines())
def test_an_option_without_effect_is_named(files, line):
    options, message = line.split(" | ")
    result = score_files("one.de", *options.split(), "-m", "ter")
    assert (result.exit_code, message in result.stderr) == (0, True), result.stderr


def test_an_option_with_an_effect_is_not_named(files):
    options = ("-m", "bleu,ter", "--tests", "t", "--lowercase")
    assert "no effect" not in score_files("one.de", "two.de", *options).stderr


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
    found = systems("one.de", "-s", "src.en", "-m", "copied")[0]["scores"]["copied"]
    # 1 of 5 words, 1 of 3, 0 of 1
    assert found["score"] == pytest.approx((20 + 100 / 3) / 3)
    write_lines(files / "src.en", ["Der monkey"])
    wrong = score_files("one.de", "-s", "src.en", "-m", "copied")
    assert "src.en: 1 line, but" in str(wrong.exception)


REFUSED = """
| there is nothing to score
one.de | the reference is missing. Give it with `-r FILE`
-r ref.de one.de --test test | none of the systems is a run, so none has test sets
runs/plain | runs/plain: no such file or run folder
one.ed -r ref.de | one.ed: no such file or run folder. Did you mean 'one.de'?
-r ref.de no.* | no.*: no file and no run folder matches the pattern
-r ref.de - - | standard input can be read only once
-r ref.de one.de one.de --seeds | one.de: the same seed of a system is given twice
-r ref.de one.de two.de --tests seeds | needs two or more seeds
-r ref.de one.de --tests wilcoxon | there is no test 'wilcoxon'
-r ref.de one.de -m copied | copied words needs the source
-r ref.de one.de --sentences all.txt | all.txt: unknown file format
-r ref.de . --seeds | .: not a run folder
-r ref.de / --seeds | /: not a run folder
-r ref.de one.de --contrast controlled | --contrast needs a model. Add `--run RUN`
one.de --model a --contrast controlled | TRANSLATIONS cannot be combined with --contrast
--model a -m bleu --contrast x | --metrics/--metric cannot be combined with --contrast
--run runs/a | runs/a: no such file or run folder
--run a --target t | --target needs --source
--run a --device cpu | --device needs texts that a model scores. Add `--source FILE --target FILE`
--model a --source s --contrast x | a contrastive set has its own texts
--model a --source s | --source needs --target
--model a b --source s --target t | one model at a time
--model a --source - --target - | read only once
--model a --contrast x --contrast y --parses t | --parses needs a single --contrast set
--model a --contrast x --checkpoint beste | Did you mean 'best'
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


def test_models_get_every_option(monkeypatch, caplog):
    options = []
    # both raise: what they return is not printed
    for function in ("contrast.report.judge_models", "model_scores.score_files"):
        monkeypatch.setattr(
            f"synmt.evaluation.{function}", lambda one: options.append(one) or 1 / 0
        )
    for line in MODELS.strip().splitlines():
        run(*line.split())
    assert caplog.messages == [
        f"{option} has no effect without a second --run" for option in ("--samples", "--seed")
    ]
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
    first, second = (one["scores"]["bleu"] for one in whole["systems"])
    assert max(second["p_values"].values()) < 0.01
    # as `sacrebleu truth -i base pascal --metrics bleu --paired-ar` prints
    assert (f"{first['score']:.2f}", f"{second['score']:.2f}") == ("24.96", "25.93")


def test_a_name_that_is_not_utf8_is_shown_on_one_line(files):
    name = os.fsdecode(b"latin-\xe9.de")
    write_lines(files / name, FIRST)
    assert r"\nlatin-\xe9.de " in score_files(name, "-m", "chrf").stdout.replace("\n", r"\n")
