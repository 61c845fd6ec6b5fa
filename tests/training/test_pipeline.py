"""A recipe trained from Python: which records come, and where the run is."""

import re
from dataclasses import replace
from unittest.mock import Mock

import pytest
from forked import let_pools_fork
from refusing import assert_refused
from tiny import TRAINING, write_corpus, write_recipe

from synmt.parsing.bulk import parse_file
from synmt.recipe.load import load_recipe
from synmt.run_folder import find_run
from synmt.training import checks, pipeline
from synmt.training.pipeline import check_values, prepare, train
from synmt.training.records import (
    RunRecord,
    StepRecord,
)

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a folder with a tiny corpus and the recipe of a plain system."""
    folder = tmp_path_factory.mktemp("pipeline")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(folder / "cache"))
        text = write_corpus(folder / "text")
        write_recipe(
            folder / "tiny.yaml", text, parser={}, syntax={}, training={**TRAINING, "use": "last"}
        )
        yield folder


def records_of(place, *overrides, **options):
    return list(
        train(place / "tiny.yaml", overrides, runs=place / "runs", data=place / "data", **options)
    )


def test_training_yields_data_steps_scores_and_the_run_folder_and_reports_progress(place, reported):
    records = records_of(place, "training.log_every=4")
    kinds = " ".join(type(record).__name__.removesuffix("Record") for record in records)
    steps, scores = "Step Validation Step Validation", "Score Score Score"
    assert kinds == f"Prepared Start {steps} End {scores} Run"
    assert records[-1] == RunRecord(place / "runs" / "tiny", "finished", 8)
    assert find_run(records[-1].folder).info()["status"] == "finished"
    jobs = "prepare: filter, prepare: vocabulary, prepare: train, prepare: valid, translate test"
    assert ", ".join(job[0] for job in reported) == jobs
    # a run that has finished
    recipe = load_recipe(place / "tiny.yaml", ["training.log_every=4"])
    again = list(train(recipe, runs=place / "runs", data=place / "data"))
    assert again == records[-4:]


def test_a_run_knows_the_devices_of_its_training(place, monkeypatch):
    def devices(*overrides, **options):
        run = records_of(place, "name=moved", *overrides, **options)[-1]
        return find_run(run.folder).info()["devices"]

    assert devices("training.max_steps=4") == ["cpu"]
    monkeypatch.setattr(pipeline, "device_name", lambda device: "GPU 1")
    assert devices() == ["cpu", "GPU 1"]
    assert devices(overwrite=True) == ["GPU 1"]


def test_the_size_of_batches_is_found_once_and_stored_in_the_run(place, monkeypatch):
    find = Mock(return_value=64)
    monkeypatch.setattr(pipeline, "fit_batch", find)
    auto = ["name=auto", "training.batch_tokens=auto"]
    records_of(place, *auto, "training.max_steps=4")
    run = find_run(records_of(place, *auto)[-1].folder)
    assert find.call_count == 1
    assert run.info()["batch_tokens"] == 64
    assert run.recipe().training.batch_tokens == "auto"


def test_training_that_is_abandoned_leaves_the_run_folder_unlocked(place):
    records = train(place / "tiny.yaml", ["name=left"], runs=place / "runs", data=place / "data")
    assert any(isinstance(record, StepRecord) for record in records)
    records.close()
    assert records_of(place, "name=left")[-1].status == "finished"


def test_overrides_belong_to_a_file(place):
    assert_refused(
        r"overrides.*load_recipe", next, train(load_recipe(place / "tiny.yaml"), ["name=x"])
    )


def test_a_tokenizer_that_only_validations_use_is_checked_before_training(place):
    chrf, wrong = "evaluation.metrics=[chrf]", "evaluation.tokenize=13b"
    assert_refused(
        "no tokenization '13b'", check_values, load_recipe(place / "tiny.yaml", [chrf, wrong])
    )
    check_values(load_recipe(place / "tiny.yaml", [chrf, wrong, "training.validation_beam_size=0"]))


def test_the_device_of_a_training_on_a_cluster_is_not_looked_for_here(place, monkeypatch):
    recipe = load_recipe(place / "tiny.yaml", ["training.device=cuda:99"])
    assert_refused("no device 'cuda:99'", check_values, recipe)
    monkeypatch.setattr(checks, "cluster_in_use", object)
    check_values(recipe)


def prepared(place, data, *overrides):
    [record] = prepare(place / "tiny.yaml", ["parser.model=compact", *overrides], data=data)
    return record


# two processes, each with half of the text, or this one
PASCAL = "syntax.variants=[{name: pascal, heads: 2}]"


@pytest.mark.parametrize(
    "overrides",
    [[PASCAL, "parser.workers=2"], ["tasks.parsing=dependencies", "parser.workers=1"]],
)
def test_what_it_took_to_parse_a_text_is_known_of_systems_and_of_tasks(
    place, tmp_path, overrides, monkeypatch
):
    let_pools_fork(monkeypatch)
    first = prepared(place, tmp_path, *overrides)
    text = (place / "text/train.en").read_text(encoding="utf-8")
    cost = first.parse_costs["source"]
    assert cost["lines"] == text.count("\n")
    # a line that equals a recent one is not parsed again
    assert 0 < cost["words"] <= len(re.findall(r"\w+|[^\w\s]", text))
    assert cost["processor_seconds"] > 0
    # the trees are there, and what they took
    again = prepared(place, tmp_path, *overrides)
    assert (again, again.parse_costs) == (first, first.parse_costs)


def test_trees_that_are_read_are_those_whose_cost_is_known(place, tmp_path):
    """Later, the same text is parsed again with probabilities of arcs."""
    arcs = "syntax.variants=[{name: dependency_distribution, kind: udd, layers: [1]}]"
    costs = [prepared(place, tmp_path, system).parse_costs for system in (PASCAL, arcs, PASCAL)]
    assert costs[0] == costs[2] != costs[1]


def test_trees_of_an_interrupted_run_of_an_old_version_took_an_unknown_time(
    place, tmp_path, monkeypatch
):
    def parse_some(*args, **options):
        for step in parse_file(*args, **options):
            is_old = {"processor_seconds": None, "state": "kept"} if step.state == "parsed" else {}
            yield replace(step, **is_old)

    monkeypatch.setattr("synmt.training.text_stages.parse_file", parse_some)
    assert prepared(place, tmp_path, PASCAL).parse_costs == {}
