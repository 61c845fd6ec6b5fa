"""Each analysis as a function: options in, a report out, without the command line."""

import logging

import pytest
from small_run import LSTM, PASCAL, TEXT, make_run, write_tests

from synmt.analysis.attention.report import analyze_attention
from synmt.analysis.compare.report import analyze_compare
from synmt.analysis.gates.report import analyze_gates
from synmt.analysis.options import (
    AttentionOptions,
    CompareOptions,
    GateOptions,
    RobustnessOptions,
    TreeOptions,
)
from synmt.analysis.robustness.report import analyze_robustness
from synmt.analysis.trees.report import analyze_trees
from synmt.reporting.page import page_of

pytestmark = pytest.mark.journey

ENGLISH, GERMAN = TEXT[:3], TEXT[3:]
HYPOTHESES = "tests/test/hypothesis.txt"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of PASCAL, and one of an LSTM with gates from German to English, with translations of a
    test set."""
    folder = tmp_path_factory.mktemp("runs")
    pascal = make_run(folder / "pascal", PASCAL)
    options = {"model": LSTM, "parser": False, "source": "de", "target": "en"}
    gated = make_run(folder / "gated", {"name": "latent_tree"}, **options)
    write_tests(pascal, ENGLISH, GERMAN)
    write_tests(gated, GERMAN, ENGLISH)
    return {"pascal": pascal.folder, "gated": gated.folder}


@pytest.mark.parametrize(
    ("run", "analyze", "options"),
    [
        ("pascal", analyze_trees, lambda run: TreeOptions(run=run, head="1.1")),
        ("pascal", analyze_attention, lambda run: AttentionOptions(run=run)),
        ("gated", analyze_gates, lambda run: GateOptions(run=run)),
        ("pascal", analyze_compare, lambda run: CompareOptions(compare=(run, run / HYPOTHESES))),
        ("pascal", analyze_robustness, lambda run: RobustnessOptions(run=run, shares="1")),
    ],
    ids=["trees", "attention", "gates", "compare", "robustness"],
)
def test_a_report_is_made_from_options_and_prints_nothing(
    runs, capsys, monkeypatch, run, analyze, options
):
    # without the handlers of commands that ran before in this process
    monkeypatch.setattr(logging.getLogger("synmt"), "handlers", [])
    report = analyze(options(runs[run]))
    assert run in report.system
    assert (set(report.runs), report.as_json()["test"]) == ({runs[run]}, "test")
    assert report.tables
    assert all(len(row) == len(table.columns) for table in report.tables for row in table.rows)
    assert page_of([report])
    assert capsys.readouterr() == ("", "")
