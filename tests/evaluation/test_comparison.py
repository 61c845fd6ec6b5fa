"""`compare_systems` from Python: the same numbers as `synmt score`, from lines in memory or from
files."""

import subprocess
import sys

import pytest
import sacrebleu
from tiny import write_lines

from synmt import evaluation
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import tokens_folder
from synmt.evaluation.significance import paired_bootstrap
from synmt.evaluation.systems import read_systems
from synmt.reporting import progress as progress_module

REFERENCES = ["Der Affe isst eine Banane.", "Er schläft heute lange.", "Ja."]
FIRST = ["Der Affe isst die Banane.", "Er schläft lange.", "Nein."]
SECOND = ["Der Affe isst eine Banane.", "Er schläft heute.", "Ja."]


def test_lines_in_memory_are_scored_and_compared_with_the_first():
    comparison = evaluation.compare_systems(
        [FIRST, SECOND], REFERENCES, metrics=["bleu", "ter"], samples=100
    )
    base, system = comparison.results["bleu"]
    assert system.value == sacrebleu.corpus_bleu(SECOND, [REFERENCES]).score
    assert system.difference == system.value - base.value
    metric = make_metric("bleu")
    first, second = (metric.statistics(lines, REFERENCES) for lines in (FIRST, SECOND))
    assert system.comparison == paired_bootstrap(first, second, metric.aggregate, samples=100)
    assert system.p_values.keys() == {"bootstrap", "randomization"}
    assert (base.difference, base.comparison, base.p_values) == (None, None, {})
    assert list(comparison.results) == ["bleu", "ter"]


def test_progress_counts_every_score_and_comparison(monkeypatch):
    jobs = []

    class Job:
        def __init__(self, what, total, unit):
            self.values = [what, total, unit, 0]
            jobs.append(self.values)

        def __enter__(self):
            return self.advance

        def __exit__(self, *error):
            return None

        def advance(self, amount):
            self.values[3] += amount

    monkeypatch.setattr(progress_module, "_display", Job)
    evaluation.compare_systems([FIRST, SECOND], REFERENCES, metrics=["bleu", "ter"], samples=10)
    # two texts and a comparison for each metric
    assert jobs == [["scoring", 6, "steps", 6]]


def test_what_cannot_be_compared_is_refused(tmp_path):
    (tmp_path / "one.de").write_text("Ja.\n")
    with pytest.raises(UsageError, match="some texts are paths, and others lists of lines"):
        evaluation.compare_systems([tmp_path / "one.de"], REFERENCES)
    with pytest.raises(UsageError, match="the reference is missing"):
        evaluation.compare_systems([FIRST])
    with pytest.raises(SynmtError, match="2 translations cannot be scored against 3 references"):
        evaluation.compare_systems([FIRST, SECOND[:2]], REFERENCES)
    with pytest.raises(UsageError, match="there are no translations to score"):
        evaluation.compare_systems([], REFERENCES)
    with pytest.raises(UsageError, match="no test 'bootstap'"):
        evaluation.compare_systems([FIRST, SECOND], REFERENCES, tests=["bootstap"])


@pytest.mark.parametrize("on", ["text", "tokens"])
def test_the_other_texts_of_a_run_are_scored_with_the_case_of_its_recipe(tmp_path, on):
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text('{"format": 1, "status": "finished"}')
    other = "text" if on == "tokens" else "tokens"
    scored = f"evaluation: {{on: {other}, tokenize: none, lowercase: true}}\n"
    text = "text: {tokenizer: char}\n"
    (run / "recipe.yaml").write_text(
        f"name: run\nsource: en\ntarget: de\ncorpus: {{folder: data}}\n{text}{scored}"
    )
    for folder in (run / "tests/test", tokens_folder(run / "tests/test")):
        for name, lines in (
            ("source", REFERENCES),
            ("reference", REFERENCES),
            ("hypothesis", SECOND),
        ):
            write_lines(folder / f"{name}.txt", lines)
    [system] = read_systems([run], on=on)
    [outputs] = system.seeds
    assert (outputs.scoring.lowercase, outputs.scoring.on_tokens) == (True, on == "tokens")
    assert outputs.scoring.tokenize == ("none" if on == "tokens" else "13a")


def test_importing_the_package_imports_neither_numpy_nor_sacrebleu():
    script = (
        "import sys\nfrom synmt import evaluation\nprint({'numpy', 'sacrebleu', 'torch'} & "
        "sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
    with pytest.raises(AttributeError, match="has no attribute 'compare'"):
        evaluation.compare  # noqa: B018
