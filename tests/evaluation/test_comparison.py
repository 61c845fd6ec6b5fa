"""`compare_systems` from Python: the same numbers as `synmt score`, from lines in memory or from
files."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
from refusing import assert_fails
from scored import FIRST, REFERENCES, SECOND
from small_run import make_run, write_tests

from synmt import evaluation
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import tokens_folder
from synmt.evaluation.significance import compare_on_resamples
from synmt.evaluation.systems import group_paths, read_groups


def test_lines_in_memory_are_scored_and_compared_with_the_first():
    comparison = evaluation.compare_systems(
        [FIRST, SECOND], REFERENCES, metrics=["bleu", "ter"], samples=100
    )
    base, system = comparison.results["bleu"]
    assert system.value == sacrebleu.corpus_bleu(SECOND, [REFERENCES]).score
    assert system.difference == system.value - base.value
    metric = make_metric("bleu")
    first, second = (metric.statistics(lines, REFERENCES) for lines in (FIRST, SECOND))
    alone = compare_on_resamples([[first], [second]], metric.aggregate, samples=100)
    assert [system.comparison] == alone
    assert system.p_values.keys() == {"bootstrap", "randomization"}
    assert (base.difference, base.comparison, base.p_values) == (None, None, {})
    assert list(comparison.results) == ["bleu", "ter"]


REFUSED = [
    ([["Ja."]], None, {}, "must all be paths, or all be lists of lines"),
    ([Path("one.de")], REFERENCES, {}, "must all be paths, or all be lists of lines"),
    ([FIRST, SECOND[:2]], REFERENCES, {}, r"equally many lines, and one or more, not \[2, 3\]"),
    ([], REFERENCES, {}, "there is nothing to score"),
    ([FIRST, SECOND], REFERENCES, {"tests": ["bootstap"]}, "no test 'bootstap'"),
]


@pytest.mark.parametrize(("systems", "references", "options", "message"), REFUSED)
def test_what_cannot_be_compared_is_refused(systems, references, options, message):
    assert_fails(message, evaluation.compare_systems, systems, references, **options)


@pytest.mark.parametrize(("on", "other"), [("text", "tokens"), ("tokens", "text")])
def test_the_other_texts_of_a_run_are_scored_with_the_case_of_its_recipe(tmp_path, on, other):
    scored = {"on": other, "tokenize": "none", "lowercase": True}
    run = make_run(tmp_path / "run", parser=False, text={"tokenizer": "char"}, evaluation=scored)
    write_tests(run, REFERENCES, REFERENCES, SECOND)
    tokens = tokens_folder(run.test_folder("test"))
    shutil.copytree(run.test_folder("test"), tokens, dirs_exist_ok=True)
    [system] = read_groups(group_paths([run.folder]), on=on)
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
