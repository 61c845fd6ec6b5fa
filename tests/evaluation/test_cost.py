"""What runs cost: read from their folders, averaged over seeds, and shown beside their scores."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from safetensors.numpy import save_file
from small_run import make_run, write_tests
from tiny import succeed

from synmt.errors import SynmtError, UsageError
from synmt.evaluation.cost import check_runs, cost_line, cost_table, costs_of, first_step, run_cost
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.systems import System
from synmt.reporting.cells import shown_rows
from synmt.run_folder import Run


def write_run(folder, *, seconds=60.0, last=25, losses=(3.0, 2.0)):
    """Write a run whose log has a record every 10 steps, and that stopped at step 25."""
    run = Run(folder)
    folder.mkdir(parents=True)
    run.write_info(
        status="finished", steps=last, parsing={"source": {"words": 900, "processor_seconds": 6.0}}
    )
    save_file({"a": np.zeros((3, 4), np.float32), "b": np.zeros(5, np.float32)}, run.weights)
    steps = [
        {
            "kind": "step",
            "step": step,
            "seconds": seconds,
            "processor_seconds": 2 * seconds,
            "tokens": 1000,
            **other,
        }
        for step, other in (
            (10, {"memory": 5e6, "joules": 7200}),
            (20, {"memory": 8e6, "joules": 7200}),
        )
    ]
    valid = [
        {"kind": "validation", "step": 10 * place, "loss": loss}
        for place, loss in enumerate(losses, start=1)
    ]
    end = [{"kind": "end", "step": last, "reason": "max_steps"}]
    run.log.write_text("".join(json.dumps(one) + "\n" for one in (*steps, *valid, *end)))
    for name in ("test", "hard"):
        run.test_folder(name).mkdir(parents=True)
        cost = {"sentences": 50, "seconds": 9.0, "processor_seconds": 5.0}
        (run.test_folder(name) / "cost.json").write_text(json.dumps(cost))
    return run


def test_the_cost_of_a_run_is_what_its_files_say(tmp_path):
    cost = run_cost(write_run(tmp_path / "a"))
    assert cost.weights == 3 * 4 + 5
    # the five steps after the last record cost what the others do
    assert cost.seconds == pytest.approx(2 * 60 * 25 / 20)
    assert cost.processor_seconds == pytest.approx(2 * 120 * 25 / 20)
    assert (cost.tokens, cost.memory) == (2500, 8e6)
    assert (cost.parsed_words, cost.parse_processor_seconds) == (900, 6.0)
    assert (cost.sentences, cost.translation_processor_seconds) == (100, 10.0)
    assert (cost.best_loss, *(first_step(cost.validation, loss) for loss in (2.5, 1.0))) == (
        2.0,
        20,
        None,
    )


def test_the_table_averages_seeds_and_leaves_out_what_nobody_knows(tmp_path):
    plain, other = (
        run_cost(write_run(tmp_path / "a")),
        run_cost(write_run(tmp_path / "b", seconds=80, losses=(1.9, 1))),
    )
    systems = [("plain", [plain]), ("pascal", [plain, other])]
    table = cost_table(systems)
    columns, (first, second) = [column.title for column in table.columns], shown_rows(table)
    assert dict(zip(columns, first, strict=True)) == {
        "system": "plain",
        "weights": "17",
        "steps": "25",
        "training": "2 min 30 s",
        "processor": "5 min 00 s",
        "tokens/s": "8",
        "memory": "8 MB",
        "parsing": "6 s",
        "parsing, words/s": "150",
        "translation, sentences/s": "10.0",
        "steps to loss": "20",
    }
    shown = dict(zip(columns, second, strict=True))
    assert (shown["training"], shown["steps to loss"]) == ("2 min 55 s", "15")
    assert any("2.000, the best of plain" in line for line in table.explanations())
    assert cost_line(Run(tmp_path / "a")) == (
        "17 weights, training 2 min 30 s; in processor time: parsing 6 s, translation 10.0 "
        "sentences/s"
    )


def test_a_run_of_an_older_version_has_what_it_wrote(tmp_path):
    run = write_run(tmp_path / "old")
    kept = [json.loads(line) for line in run.log.read_text().splitlines()]
    for record in kept:
        for key in ("seconds", "processor_seconds", "tokens", "joules"):
            record.pop(key, None)
    run.log.write_text("".join(json.dumps(one) + "\n" for one in kept))
    # the wall clock of parsing, which is no processor time
    parsing = {"source": {"words": 900, "seconds": 3.0, "processes": 2}}
    old = {"format": 1, "status": "finished", "steps": 25, "parsing": parsing}
    (tmp_path / "old/run.json").write_text(json.dumps(old))
    for path in run.folder.glob("tests/*/cost.json"):
        path.unlink()
    cost = run_cost(run)
    assert (cost.seconds, cost.tokens, cost.parse_processor_seconds, cost.sentences) == (None,) * 4
    assert cost_line(run) == "17 weights"
    table = cost_table([("old", [cost])])
    assert [column.title for column in table.columns] == ["system", "weights", "steps", "memory"]
    run.log.unlink()
    assert run_cost(run).best_loss == math.inf


def test_a_side_of_unknown_time_makes_the_cost_of_parsing_unknown(tmp_path):
    run = write_run(tmp_path / "a")
    old, new = (
        {"words": 9000, "seconds": 3.0, "processes": 2},
        {"words": 900, "processor_seconds": 6.0},
    )
    run.write_info(parsing={"source": old, "target": new})
    assert (run_cost(run).parsed_words, run_cost(run).parse_processor_seconds) == (None, None)
    run.write_info(parsing={"source": new, "target": new})
    assert (run_cost(run).parsed_words, run_cost(run).parse_processor_seconds) == (1800, 12.0)


def test_a_log_with_a_loss_that_is_not_finite_or_half_a_line_is_read(tmp_path):
    run = write_run(tmp_path / "a", losses=(3.0, None))
    with run.log.open("a") as log:
        log.write('{"kind": "step", "st')
    assert (run_cost(run).validation, run_cost(run).best_loss) == ([(10, 3.0)], 3.0)
    assert "17 weights" in cost_line(run)


def test_files_have_no_cost(tmp_path):
    (tmp_path / "one.de").write_text("x\n")
    for given in ("one.de", "*.de"):
        # before anything is scored
        with pytest.raises(UsageError, match="files have no record of cost"):
            check_runs([tmp_path / given])
    check_runs([tmp_path / "one.de", tmp_path])
    # a typing error is named as such
    with pytest.raises(SynmtError, match=r"on\.de: no such file or run folder\. Did you mean"):
        check_runs([tmp_path / "on.de"])
    file = System("a.de", [Outputs("a.de", "", [], ["x"], ["x"])])
    assert costs_of([file]) == []
    run = write_run(tmp_path / "a")
    system = System("a", [Outputs("a", "test", [], ["x"], ["x"], run=run.folder)])
    assert costs_of([system, file]) == [("a", [run_cost(run)])]


@pytest.mark.journey
def test_the_costs_follow_the_scores_in_a_table_of_their_own(tmp_path):
    for name, hypothesis in (("a", "ein Hund bellt laut"), ("b", "eine Katze schläft hier")):
        run = make_run(tmp_path / name, parser=False)
        write_tests(
            run,
            ["a", "b"],
            ["ein Hund bellt laut", "die Katze schläft hier"],
            [hypothesis, hypothesis],
        )
    options = ["--cost", "--format", "tsv", "--metrics", "bleu"]
    shown = succeed("score", tmp_path / "a", tmp_path / "b", *options).stdout.decode()
    scores, *_, costs = shown.split("\n\n")
    assert scores.startswith("system\t")
    header, *rows = (line.split("\t")[:3] for line in costs.splitlines())
    assert header == ["system", "BLEU", "weights"]
    of_systems = {line.split("\t")[0]: line.split("\t")[2] for line in scores.splitlines()[1:]}
    assert {name: score for name, score, _ in rows} == of_systems
    assert set(of_systems) == {"a", "b"}
