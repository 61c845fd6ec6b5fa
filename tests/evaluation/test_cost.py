"""What runs cost: read from their folders, averaged over seeds, and shown beside their scores."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tiny import write_lines

from synmt.evaluation.cost import cost_report, cost_table, is_untested, run_cost
from synmt.reporting.text import shown_rows
from synmt.run_folder import Run

LOG = """
{"kind": "step", "step": 10, "seconds": S, "processor_seconds": P, "tokens": 1000, "memory": 5e6}
{"kind": "step", "step": 20, "seconds": S, "processor_seconds": P, "tokens": 1000, "memory": 8e6}
{"kind": "validation", "step": 10, "loss": L}
{"kind": "validation", "step": 20, "loss": 2.0}
{"kind": "end", "step": 25, "reason": "max_steps"}
"""


def write_run(folder, *, seconds=60.0, loss=3.0):
    """Write a run whose log has a record every 10 steps, and that stopped at step 25."""
    run = Run(folder)
    folder.mkdir(parents=True)
    parsing = {"source": {"words": 900, "processor_seconds": 6.0}}
    run.write_info(status="finished", steps=25, parsing=parsing)
    save_file({"a": np.zeros((3, 4), np.float32), "b": np.zeros(5, np.float32)}, run.weights)
    values = {"S": seconds, "P": 2 * seconds, "L": loss}
    run.log.write_text(re.sub(r"\b[SPL]\b", lambda name: str(values[name[0]]), LOG.lstrip()))
    for name in ("test", "hard"):
        cost = '{"sentences": 50, "seconds": 9.0, "processor_seconds": 5.0}'
        write_lines(run.test_folder(name) / "cost.json", [cost])
    return run


def test_the_cost_of_a_run_is_what_its_files_say(tmp_path):
    cost = run_cost(write_run(tmp_path / "a"))
    expected = {
        "weights": 3 * 4 + 5,
        # the five steps after the last record cost what the others do
        "seconds": 2 * 60 * 25 / 20,
        "processor_seconds": 2 * 120 * 25 / 20,
        "tokens": 2500,
        "memory": 8e6,
        "parsed_words": 900,
        "parse_processor_seconds": 6.0,
        "sentences": 100,
        "translation_processor_seconds": 10.0,
        "validation": [(10, 3.0), (20, 2.0)],
    }
    assert {name: cost[name] for name in expected} == expected


def test_recipes_and_runs_in_training_have_a_cost_before_there_is_a_score(tmp_path):
    run = write_run(tmp_path / "a")
    (run.folder / "tests" / "test" / "hypothesis.txt").touch()
    # nor does a pattern name a recipe
    assert not any(map(is_untested, [run.folder, tmp_path / "a*"]))
    shutil.rmtree(run.folder / "tests")
    paths = [Path("iwslt14-deen-base"), Path("iwslt14-deen-deps-san-wink"), run.folder]
    assert all(map(is_untested, paths))
    [table] = cost_report([*paths, write_run(tmp_path / "other" / "a").folder]).tables
    rows = table.as_json()["rows"]
    # the paper has 74.85 million for both
    assert [row["weights"] // 10_000 for row in rows] == [7485, 7485, 0, 0]
    assert [row["seconds_per_100"] for row in rows] == [None, None, *[pytest.approx(600)] * 2]


def test_the_table_averages_seeds_and_leaves_out_what_nobody_knows(tmp_path):
    plain = run_cost(write_run(tmp_path / "a"))
    other = run_cost(write_run(tmp_path / "b", seconds=80, loss=1.9))
    table = cost_table([("plain", [plain]), ("pascal", [plain, other])])
    titles = [column.title for column in table.columns]
    own, shown = (dict(zip(titles, row, strict=True)) for row in shown_rows(table))
    names = (
        "parameters",
        "steps",
        "tokens/s",
        "memory",
        "parsing, words/s",
        "translation, sentences/s",
    )
    assert [own[name] for name in names] == ["17", "25", "8", "8 MB", "150", "10.0"]
    assert (shown["training"], shown["steps to loss"]) == ("2 min 55 s", "15")
    assert own["steps to loss"] == "20"


def test_a_run_of_an_older_version_has_what_it_wrote(tmp_path):
    run = write_run(tmp_path / "old")
    log = run.log.read_text()
    run.log.write_text(re.sub('"(seconds|processor_seconds|tokens)": [^,]*, ', "", log))
    # the wall clock of parsing, which is no processor time
    parsing = {"source": {"words": 900, "seconds": 3.0, "processes": 2}}
    old = {"format": 1, "status": "finished", "steps": 25, "parsing": parsing}
    (tmp_path / "old/run.json").write_text(json.dumps(old))
    for path in run.folder.glob("tests/*/cost.json"):
        path.unlink()
    cost = run_cost(run)
    unknown = ("seconds", "tokens", "parse_processor_seconds", "sentences")
    assert [cost[name] for name in unknown] == [None] * 4
    table = cost_table([("old", [cost])])
    assert [column.title for column in table.columns] == [
        *("system", "parameters", "steps", "memory", "steps to loss")
    ]
    run.log.unlink()
    assert run_cost(run)["validation"] == []


def test_a_side_of_unknown_time_makes_the_cost_of_parsing_unknown(tmp_path):
    run = write_run(tmp_path / "a")
    new = run.info()["parsing"]["source"]
    old = {"words": 9000, "seconds": 3.0, "processes": 2}
    for source, expected in ((old, (None, None)), (new, (1800, 12.0))):
        run.write_info(parsing={"source": source, "target": new})
        cost = run_cost(run)
        assert (cost["parsed_words"], cost["parse_processor_seconds"]) == expected
