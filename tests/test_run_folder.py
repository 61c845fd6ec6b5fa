"""The run folder and its checkpoints, also when the disk is full or files are damaged."""

import errno
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from copy_task import make_trainer
from refusing import assert_fails, assert_refused
from small import small_model, small_recipe
from tiny import snapshot, write_lines

from synmt.corpora.resolve import Corpus
from synmt.errors import SynmtError
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.load import recipe_values
from synmt.recipe.schema import TrainingRecipe
from synmt.recipe.yaml_text import dump_yaml
from synmt.run_folder import Run, find_run
from synmt.training.checkpoint import (
    TrainingState,
    drop_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from synmt.training.finished import has_finished
from synmt.training.lifecycle import (
    begin_run,
    check_run,
    finish_run,
    remove_leftovers,
    write_final_weights,
)
from synmt.training.preparation import Prepared
from synmt.training.records import Log

FILES = SplitFiles(source=Path("text/train.en"), target=Path("text/train.de"))
CORPUS = Corpus("text", "en", "de", FILES, FILES, {})
PREPARED = Prepared(
    CORPUS,
    Path("data/text"),
    trees={},
    made_by={"source": "parse-source-1"},
    parser=None,
    tokenizers={},
    raw=CORPUS,
    parse_costs={},
    inputs={},
    new=True,
)
RECIPE = small_recipe(name="one")
LONGER = small_recipe(name="one", training={"max_steps": 7})


@pytest.fixture
def run(tmp_path):
    """Begin a run."""
    run = Run(tmp_path / "one")
    begin_run(run, RECIPE, PREPARED, overwrite=False)
    return run


assert_same = partial(torch.testing.assert_close, rtol=0, atol=0)


def trained(seed=0):
    """Make a model that has taken one step of Adam."""
    model = small_model(seed=seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    sum(parameter.square().sum() for parameter in model.parameters()).backward()
    optimizer.step()
    return model, optimizer


def save(run, *steps, **state):
    """Write checkpoints of some steps."""
    parts = trained()
    for step in steps:
        save_checkpoint(run, step, *parts, {"step": step, **state})
    return run


@pytest.fixture
def saved(tmp_path):
    """Make a run with a checkpoint of step 2."""
    return save(Run(tmp_path), 2)


def test_weights_optimiser_and_state_come_back_bit_for_bit(tmp_path):
    run, (model, optimizer) = Run(tmp_path), trained()
    state = {"step": 7, "epoch": 1, "batch": 2, "best_step": 3, "best_value": 0.1 + 0.2}
    state |= {"waited": 4, "scaler": {"scale": 0.1}}
    save_checkpoint(run, 7, model, optimizer, state)
    other, empty = trained(seed=5)
    assert load_checkpoint(run.checkpoint(7), other, empty) == TrainingState(**state)
    assert_same(*([*each.parameters()] for each in (model, other)))
    assert_same(*([*each.state.values()] for each in (optimizer, empty)))


def test_weights_have_the_mode_of_every_other_file(tmp_path):
    before = os.umask(0o027)
    try:
        run = save(Run(tmp_path), 2)
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in run.checkpoint(2).iterdir()]
    assert modes == [0o640] * 4


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_disk_that_refuses_leaves_the_checkpoint_before(saved, code, function):
    before = snapshot(saved.folder)
    message = f"step-00000004: cannot write: {os.strerror(code)}. Make room or choose another"
    with (
        patch.object(os, function, side_effect=OSError(code, os.strerror(code))),
        pytest.raises(SynmtError, match=message),
    ):
        save(saved, 4)
    assert snapshot(saved.folder) == before
    assert saved.checkpoints() == [saved.checkpoint(2)]


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_checkpoint_that_has_been_damaged_is_named(saved, name, damage):
    path = saved.checkpoint(2) / name
    path.write_bytes(path.read_bytes()[:-2])
    if damage == "missing":
        path.unlink()
    assert_fails(
        r"step-00000002.*(broken|missing)", load_checkpoint, saved.checkpoint(2), *trained()
    )


def test_a_state_of_another_version_is_refused(tmp_path):
    trainer = make_trainer(tmp_path)
    state = vars(trainer.state) | {"step": 2, "moon": "full"}
    save_checkpoint(trainer.run, 2, trainer.model, trainer.optimizer, state)
    assert_fails(r"step-00000002/state.json: broken: moon: unexpected", trainer.resume)


def test_lines_of_the_log_that_are_no_records_go_with_those_after_the_checkpoint(tmp_path):
    log = tmp_path / "log.jsonl"
    odd = b'\xff\xfe\n\0\0\0\n[]\n3\n{"step": 1}\n{"step": "1", "kind": "step"}\n'
    first, second, late = (b'{"step": %d, "kind": "step"}\n' % step for step in (2, 4, 6))
    log.write_bytes(first + odd + second + late + odd + b'{"st')
    Log(tmp_path, 4)
    assert log.read_bytes() == first + second


@pytest.mark.journey
def test_what_a_killed_process_left_is_removed_and_nothing_else(saved, tmp_path):
    def write(*names):
        for name in names:
            write_lines(tmp_path / name, ["{"])

    write("tests/one/scores.json", ".gitignore")
    before = sorted(tmp_path.rglob("*"))
    write("checkpoints/.step-00000004.k2_x8abc.unfinished/model.safetensors")
    write(".run.json.abcdefgh.unfinished", "tests/one/.scores.json.12345678.unfinished")
    remove_leftovers(saved)
    assert sorted(tmp_path.rglob("*")) == before


def test_only_what_is_needed_is_kept(tmp_path):
    run = save(Run(tmp_path), 2, 4, 6, 8, 9)
    drop_checkpoints(run, TrainingRecipe(save_every=2, validate_every=2, keep=2), best_step=2)
    assert [path.name[-1] for path in run.checkpoints()] == ["2", "6", "8", "9"]
    [optimizer] = run.folder.rglob("optimizer.safetensors")
    assert optimizer.parent == run.checkpoint(9)


def test_best_last_and_average_are_found(tmp_path):
    run = save(Run(tmp_path), 2, 4, best_step=2)
    (tmp_path / "average.safetensors").touch()
    places = {"best": run.checkpoint(2) / "model", "last": run.checkpoint(4) / "model"}
    for name, path in {**places, "average": tmp_path / "average"}.items():
        assert run.weights_of(name) == path.with_suffix(".safetensors")


@pytest.mark.parametrize(
    ("status", "weights", "message"),
    [
        ("training", "final", r"has no final weights.*synmt train"),
        ("training", "average", r"has no average weights.*training\.average"),
        ("training", "best", "no validation has given a finite value"),
        ("training", "fnal", r"no checkpoint 'fnal'.*final, best, last, average.*mean 'final'"),
        ("none", "last", "the run has no last weights"),
    ],
)
def test_weights_that_are_not_there_are_a_message(tmp_path, status, weights, message):
    run = Run(tmp_path)
    run.write_info(status=status)
    if status != "none":
        save(run, 6, best_step=0)
    assert_fails(message, run.weights_of, weights)


def test_the_run_that_finished_last_is_found_among_strange_folders(tmp_path):
    for name, text in {"list": "[]", "torn": "{"}.items():
        write_lines(tmp_path / name / "run.json", [text])
    Run(tmp_path / "c").write_info(status="training")
    assert_fails("no finished run", find_run, None, tmp_path)
    for name, day in {"a": 2, "b": 3}.items():
        Run(tmp_path / name).write_info(status="finished", finished_at=f"2026-01-0{day}T00:00:00")
    assert find_run(None, tmp_path).name == "b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "broken: the content: invalid JSON"),
        ("[]", "broken: "),
        (
            '{"format": 99, "synmt": "9.9"}',
            r"format 99; this synmt reads format 1. Use the synmt that made it \(9.9\)",
        ),
        ("", r"not a run folder: run\.json is missing"),
    ],
)
def test_a_broken_run_folder_is_named(tmp_path, text, message):
    if text:
        (tmp_path / "run.json").write_text(text, encoding="utf-8")
    assert_fails(message, find_run, tmp_path)
    for overwrite in (False, True) if "99" in text else ():
        assert_fails(message, check_run, Run(tmp_path), RECIPE, overwrite=overwrite)


def test_a_run_whose_facts_may_not_be_read_says_why(tmp_path):
    # root may read every file, but no one reads a folder as a file
    (tmp_path / "run.json").mkdir()
    message = r"run.json: cannot read the file \(Is a directory\). Check its permissions"
    assert_fails(message, Run(tmp_path).info)


# which recipe may use a run folder


@pytest.mark.journey
@pytest.mark.parametrize("left", ["lock", ".recipe.yaml.abcdefgh"])
def test_a_start_that_was_killed_before_the_run_had_a_name_is_no_obstacle(tmp_path, left):
    run = Run(tmp_path)
    (run.folder / left).touch()
    if left == "lock":
        run.write_recipe(RECIPE)
    check_run(run, RECIPE, overwrite=False)
    begin_run(run, RECIPE, PREPARED, overwrite=False)
    assert run.info()["status"] == "training"


@pytest.mark.parametrize(
    "changed", [{"folder": Path("data/other")}, {"made_by": {"source": "parse-source-2"}}]
)
def test_a_run_whose_text_or_parser_has_changed_is_not_continued(run, changed):
    begin_run(run, RECIPE, PREPARED, overwrite=False)
    other = replace(PREPARED, **changed)
    assert_refused(
        r"text, or the parser of its trees, has changed since",
        begin_run,
        run,
        RECIPE,
        other,
        overwrite=False,
    )
    assert run.info()["trees"] == {"source": "parse-source-1"}
    begin_run(run, RECIPE, other, overwrite=True)


def test_a_finished_run_that_is_killed_while_it_gets_a_new_recipe_has_not_finished_with_it(
    run, monkeypatch
):
    finish_run(run, 5)
    assert has_finished(run, RECIPE)
    write = Run.write_recipe

    def write_and_die(run, recipe):
        write(run, recipe)
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "write_recipe", write_and_die)
    with pytest.raises(KeyboardInterrupt):
        begin_run(run, LONGER, PREPARED, overwrite=False)
    assert not has_finished(run, LONGER)
    assert run.recipe() == LONGER


RELATIVE = {"name": "relative", "heads": 1}
PASCAL = {"name": "pascal", "heads": 1, "variance": 1}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ([{}, {"variance": 4}], "syntax.variants.1.variance was 1, is 4"),
        ([{}, {"ignore": 0.3}], "syntax.variants.1.ignore was the default, is 0.3"),
        ([{"heads": 2}, {"variance": 4}], "syntax.variants.0.heads was 1, is 2; synt.*1, is 4"),
        ([{}], r"syntax.variants.1.name was 'pascal', is the default; .*"),
    ],
)
def test_a_changed_option_of_a_variant_is_shown_alone(run, changed, message):
    before = [RELATIVE, PASCAL]
    after = [variant | change for variant, change in zip(before, changed, strict=False)]
    first, other = (small_recipe(name="one", syntax={"variants": v}) for v in (before, after))
    run.write_recipe(first)
    assert_refused(
        f"with a different recipe: {message}. Give", check_run, run, other, overwrite=False
    )


def test_a_finished_run_without_checkpoints_is_not_trained_again_from_the_first_step(run):
    check_run(run, LONGER, overwrite=False)
    finish_run(run, 5)
    check_run(run, RECIPE, overwrite=False)
    message = r"cannot be continued or changed without its checkpoints.*name=one-2.*--overwrite"
    assert_refused(message, check_run, run, LONGER, overwrite=False)
    run.checkpoint(5).mkdir(parents=True)
    check_run(run, LONGER, overwrite=False)


def test_an_average_may_have_fewer_checkpoints_than_asked_for(tmp_path):
    run = save(Run(tmp_path), 2, 4, best_step=2)
    write_final_weights(run, small_recipe(training={"save_every": 2, "average": 3}))
    assert run.weights_of("average").exists()
    # the average of a run that goes on without one is no longer that of its last weights
    write_final_weights(run, small_recipe(training={"save_every": 2, "use": "last"}))
    assert not (tmp_path / "average.safetensors").exists()


def test_overwriting_removes_a_link_and_not_what_is_behind_it(run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (run.folder / "checkpoints").symlink_to(tmp_path / "elsewhere")
    begin_run(run, RECIPE, PREPARED, overwrite=True)
    assert (tmp_path / "elsewhere").is_dir()
    assert sorted(path.name for path in run.folder.iterdir()) == ["recipe.yaml", "run.json"]


def test_a_run_from_before_auto_has_the_recipe_that_it_was_trained_with(run):
    # the default of both sides was `compact`, and nothing read trees of a German target
    before = recipe_values(RECIPE)
    before["target_parser"]["model"] = "compact"
    (run.folder / "recipe.yaml").write_text(dump_yaml(before), encoding="utf-8")
    assert run.recipe() == RECIPE


def test_a_run_without_its_recipe_is_broken(run):
    (run.folder / "recipe.yaml").unlink()
    assert_fails(r"recipe.yaml: cannot read the file", run.recipe)
