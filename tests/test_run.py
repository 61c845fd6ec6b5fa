"""The run folder and its checkpoints, also when the disk is full or files are damaged."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
import torch
from copy_task import make_trainer
from safetensors import SafetensorError
from small import small_model, small_recipe
from tiny import snapshot

from synmt.corpora.resolve import Corpus
from synmt.errors import SynmtError, UsageError
from synmt.model import weights
from synmt.model.weights import save_weights
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.load import check_recipe, recipe_values
from synmt.recipe.schema import TrainingRecipe
from synmt.recipe.yaml_text import dump_yaml
from synmt.run import Run, find_run, read_state
from synmt.training.checkpoint import drop_checkpoints, load_checkpoint, save_checkpoint
from synmt.training.finished import has_finished
from synmt.training.lifecycle import (
    begin_run,
    check_run,
    finish_run,
    remove_leftovers,
    write_final_weights,
)
from synmt.training.log import Log
from synmt.training.preparation import Prepared

FILES = SplitFiles(source=Path("text/train.en"), target=Path("text/train.de"))
PREPARED = Prepared(
    Corpus("text", "en", "de", FILES, FILES, {}),
    Path("data/text"),
    made_by={"source": "parse-source-1"},
)


@pytest.fixture
def recipe():
    return check_recipe(
        {"name": "one", "source": "en", "target": "de", "corpus": {"folder": "text"}}, where="test"
    )


def trained(seed=0):
    """Make a model that has taken one step of Adam."""
    model = small_model(seed=seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    sum(parameter.square().sum() for parameter in model.parameters()).backward()
    optimizer.step()
    return model, optimizer


@pytest.fixture
def saved(tmp_path):
    """Make a run with a checkpoint of step 2; gives the run, its model and its optimiser."""
    model, optimizer = trained()
    save_checkpoint(Run(tmp_path), 2, model, optimizer, {"step": 2})
    return Run(tmp_path), model, optimizer


def test_weights_optimiser_and_state_come_back_bit_for_bit(tmp_path):
    model, optimizer = trained()
    state = {"step": 7, "best_value": float("inf"), "learning": 0.1 + 0.2}
    save_checkpoint(Run(tmp_path), 7, model, optimizer, state)
    other = trained(seed=5)[0]
    empty = torch.optim.AdamW(other.parameters(), lr=0.01)
    assert load_checkpoint(Run(tmp_path).checkpoint(7), other, empty) == state
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        assert optimizer.state[one].keys() == empty.state[two].keys()
        assert all(
            torch.equal(optimizer.state[one][key], empty.state[two][key])
            for key in optimizer.state[one]
        )


def test_the_tensors_of_an_optimiser_are_gone_through_once(saved, monkeypatch):
    run, model, optimizer = saved
    scans = []

    class Counted(dict):
        def items(self):
            scans.append("items")
            return super().items()

        def __iter__(self):
            scans.append("keys")
            return super().__iter__()

    load_tensors = weights.load_tensors
    monkeypatch.setattr(weights, "load_tensors", lambda path: Counted(load_tensors(path)))
    load_checkpoint(run.checkpoint(2), model, optimizer)
    # the weights once, the states to check and to restore them
    assert len(scans) == 3


@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_weights_have_the_mode_of_every_other_file(tmp_path, mask):
    run, (model, optimizer) = Run(tmp_path), trained()
    before = os.umask(mask)
    try:
        save_checkpoint(run, 2, model, optimizer, {"step": 2})
        save_weights(model, run.weights)
    finally:
        os.umask(before)
    modes = {
        path.name: path.stat().st_mode & 0o777
        for path in [*run.checkpoint(2).iterdir(), run.weights]
    }
    names = ["model.safetensors", "optimizer.safetensors", "state.json", "checksums.sha256"]
    assert modes == dict.fromkeys(names, 0o666 & ~mask)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_disk_that_refuses_leaves_the_checkpoint_before(saved, code, function):
    run, model, optimizer = saved
    before = snapshot(run.folder)
    advice = "Make room or choose another" if code == errno.ENOSPC else "Choose another"
    message = rf"step-00000004: cannot write: {os.strerror(code)}. {advice} folder"
    with (
        patch.object(os, function, side_effect=OSError(code, os.strerror(code))),
        pytest.raises(SynmtError, match=message),
    ):
        save_checkpoint(run, 4, model, optimizer, {"step": 4})
    assert run.checkpoints() == [run.checkpoint(2)]
    assert snapshot(run.folder) == before
    assert [path.name for path in (run.folder / "checkpoints").iterdir()] == ["step-00000002"]


def test_weights_that_cannot_be_written_are_a_message_whose_advice_fits(tmp_path, monkeypatch):
    path = tmp_path / "gone" / "model.safetensors"
    with pytest.raises(
        SynmtError,
        match=rf"{path}: cannot write: No such file or directory\. Choose another folder",
    ):
        save_weights(small_model(), path)
    full = SafetensorError(
        "Error while serializing: I/O error: No space left on device (os error 28)"
    )
    for error, message in (
        (full, "No space left on device. Make room or choose another folder"),
        (SafetensorError("invalid header"), "invalid header. Choose another folder"),
    ):
        monkeypatch.setattr(weights, "save_file", Mock(side_effect=error))
        with pytest.raises(SynmtError, match=rf"cannot write: {message}"):
            save_weights(small_model(), path)


def test_weights_that_may_not_be_read_are_not_missing(tmp_path, monkeypatch):
    def refused(path):
        raise FileNotFoundError

    (tmp_path / "model.safetensors").touch()
    monkeypatch.setattr(weights, "load_file", refused)
    with pytest.raises(
        SynmtError, match=r"model\.safetensors: cannot read the file\. Check its permissions"
    ):
        weights.load_tensors(tmp_path / "model.safetensors")


def test_a_run_whose_folder_was_renamed_says_how_it_goes_on(tmp_path):
    run = Run(tmp_path / "other")
    run.folder.mkdir()
    run.write_recipe(small_recipe(name="first"))
    run.write_info(name="first", status="training")
    with pytest.raises(
        UsageError, match=r"the run 'first', whose folder was renamed .*Rename the folder to first"
    ):
        check_run(run, small_recipe(name="other"), overwrite=False)
    check_run(run, small_recipe(name="other"), overwrite=True)
    check_run(run, small_recipe(name="first"), overwrite=False)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_checkpoint_that_has_been_damaged_is_named(saved, name, damage):
    run, model, optimizer = saved
    path = run.checkpoint(2) / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(SynmtError, match=r"step-00000002.*(broken|missing)"):
        load_checkpoint(run.checkpoint(2), model, optimizer)


@pytest.mark.parametrize("state", ["[]", "null", "3", "{"])
def test_a_state_that_is_none_is_a_broken_checkpoint(saved, state):
    (saved[0].checkpoint(2) / "state.json").write_text(state)
    with pytest.raises(SynmtError, match=r"step-00000002/state.json: broken: "):
        saved[0].weights_of("best")


def test_lines_of_the_log_that_are_no_records_go_with_those_after_the_checkpoint(tmp_path):
    lines = [b'{"step": %d, "kind": "step"}' % step for step in (2, 4, 6)]
    odd = [
        b"\xff\xfe",
        b"\0\0\0",
        b"[]",
        b"3",
        b'{"step": 1}',
        b'{"step": "1", "kind": "step"}',
        b'{"st',
    ]
    (tmp_path / "log.jsonl").write_bytes(b"\n".join([lines[0], *odd[:3], *lines[1:], *odd[3:]]))
    Log(tmp_path, 4)
    assert (tmp_path / "log.jsonl").read_bytes().splitlines() == lines[:2]


def test_a_state_of_another_version_is_refused(tmp_path):
    trainer = make_trainer(tmp_path)
    save_checkpoint(trainer.run, 2, trainer.model, trainer.optimizer, {"step": 2, "moon": "full"})
    with pytest.raises(SynmtError, match=r"step-00000002/state.json: broken: moon is unknown"):
        trainer.resume()


@pytest.mark.journey
def test_what_a_killed_process_left_is_removed_and_nothing_else(saved, tmp_path):
    kept = [*tmp_path.rglob("*")]
    killed = tmp_path / "checkpoints" / ".step-00000004.k2_x8abc.unfinished"
    for folder in (killed, tmp_path / "tests" / "one"):
        folder.mkdir(parents=True)
    (killed / "model.safetensors").write_bytes(b"half")
    for name in (
        ".run.json.abcdefgh.unfinished",
        "tests/one/.scores.json.12345678.unfinished",
        ".gitignore",
    ):
        (tmp_path / name).write_text("{")
    remove_leftovers(saved[0])
    extra = [tmp_path / "tests", tmp_path / "tests" / "one", tmp_path / ".gitignore"]
    assert sorted(tmp_path.rglob("*")) == sorted([*kept, *extra])


def test_only_what_is_needed_is_kept(tmp_path):
    run, (model, optimizer) = Run(tmp_path), trained()
    for step in (2, 4, 6, 8, 9):
        save_checkpoint(run, step, model, optimizer, {"step": step})
    drop_checkpoints(run, TrainingRecipe(save_every=2, validate_every=2, keep=2), best_step=2)
    assert [path.name[-1] for path in run.checkpoints()] == ["2", "6", "8", "9"]
    assert [
        path.name[-1] for path in run.checkpoints() if (path / "optimizer.safetensors").exists()
    ] == ["9"]


def test_best_last_and_average_are_found(tmp_path):
    run, (model, optimizer) = Run(tmp_path), trained()
    run.write_info(status="training")
    save_checkpoint(run, 2, model, optimizer, {"best_step": 2})
    save_checkpoint(run, 4, model, optimizer, {"best_step": 2})
    assert run.weights_of("best") == run.checkpoint(2) / "model.safetensors"
    assert run.weights_of("last") == run.checkpoint(4) / "model.safetensors"
    assert read_state(run.checkpoint(4)) == {"best_step": 2}
    with pytest.raises(SynmtError, match="has not finished"):
        run.weights_of("final")
    with pytest.raises(SynmtError, match=r"no averaged weights.*training\.average"):
        run.weights_of("average")
    with pytest.raises(
        UsageError, match=r"no checkpoint 'fnal'.*final, best, last, average.*mean 'final'"
    ):
        run.weights_of("fnal")
    (tmp_path / "average.safetensors").touch()
    assert run.weights_of("average") == tmp_path / "average.safetensors"
    save_checkpoint(run, 6, model, optimizer, {"best_step": 0})
    with pytest.raises(SynmtError, match="no validation has given a finite value"):
        run.weights_of("best")
    run.write_info(status="finished")
    with pytest.raises(SynmtError, match=r"broken: model.safetensors is missing"):
        run.weights_of("final")


def test_a_strange_folder_beside_the_runs_is_passed_over(tmp_path):
    for name, text in {
        "list": "[]",
        "torn": "{",
        "good": '{"format": 1, "status": "finished"}',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text, encoding="utf-8")
    assert find_run(None, tmp_path).name == "good"


@pytest.mark.journey
@pytest.mark.parametrize("left", ["lock", ".recipe.yaml.abcdefgh"])
def test_a_start_that_was_killed_before_the_run_had_a_name_is_no_obstacle(tmp_path, recipe, left):
    run = Run(tmp_path / "one")
    run.folder.mkdir()
    (run.folder / left).touch()
    if left == "lock":
        run.write_recipe(recipe)
    check_run(run, recipe, overwrite=False)
    begin_run(run, recipe, PREPARED, overwrite=False)
    assert run.info()["status"] == "training"


@pytest.mark.parametrize(
    "changed", [{"folder": Path("data/other")}, {"made_by": {"source": "parse-source-2"}}]
)
def test_a_run_whose_text_or_parser_has_changed_is_not_gone_on_with(tmp_path, recipe, changed):
    run = Run(tmp_path / "one")
    begin_run(run, recipe, PREPARED, overwrite=False)
    begin_run(run, recipe, PREPARED, overwrite=False)
    message = (
        r"text, or the parser of its trees, has changed since this run was started.*--overwrite"
    )
    with pytest.raises(UsageError, match=message):
        begin_run(run, recipe, replace(PREPARED, **changed), overwrite=False)
    assert run.info()["trees"] == {"source": "parse-source-1"}
    begin_run(run, recipe, replace(PREPARED, **changed), overwrite=True)


def test_a_finished_run_that_is_killed_while_it_gets_a_new_recipe_has_not_finished_with_it(
    tmp_path, recipe, monkeypatch
):
    run, more = Run(tmp_path / "one"), with_steps(recipe, 7)
    begin_run(run, recipe, PREPARED, overwrite=False)
    finish_run(run, 5)
    assert has_finished(run, recipe)
    write = Run.write_recipe

    def write_and_die(run, recipe):
        write(run, recipe)
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "write_recipe", write_and_die)
    with pytest.raises(KeyboardInterrupt):
        begin_run(run, more, PREPARED, overwrite=False)
    assert not has_finished(run, more)
    assert run.recipe() == more


def with_steps(recipe, steps):
    return recipe.model_copy(
        update={"training": recipe.training.model_copy(update={"max_steps": steps})}
    )


def test_a_changed_option_of_a_variant_is_shown_alone(tmp_path):
    def with_variants(*variants):
        return small_recipe(
            name="one",
            syntax={"variants": [{"name": name, "layers": [1], **o} for name, o in variants]},
        )

    run = Run(tmp_path / "one")
    run.folder.mkdir()
    run.write_recipe(
        with_variants(("relative", {"heads": 1}), ("pascal", {"heads": 1, "variance": 1}))
    )
    run.write_info(name="one")
    for heads, more, said in (
        (1, {"variance": 4}, "syntax.variants.1.variance was 1, is 4. Give"),
        (
            1,
            {"variance": 1, "ignore": 0.3},
            "syntax.variants.1.ignore was the default, is 0.3. Give",
        ),
        (
            2,
            {"variance": 4},
            "syntax.variants.0.heads was 1, is 2; syntax.variants.1.variance was 1, is 4. Give",
        ),
    ):
        with pytest.raises(UsageError, match=f"with a different recipe: {said}"):
            check_run(
                run,
                with_variants(("relative", {"heads": heads}), ("pascal", {"heads": 1, **more})),
                overwrite=False,
            )
    with pytest.raises(
        UsageError, match=r"recipe: syntax.variants was \[relative, pascal\], is \[relative\]. Give"
    ):
        check_run(run, with_variants(("relative", {"heads": 1})), overwrite=False)


def test_a_finished_run_without_checkpoints_is_not_trained_again_from_the_first_step(
    tmp_path, recipe
):
    run, more = Run(tmp_path / "one"), with_steps(recipe, 7)
    begin_run(run, recipe, PREPARED, overwrite=False)
    check_run(run, more, overwrite=False)
    finish_run(run, 5)
    check_run(run, recipe, overwrite=False)
    check_run(run, more, overwrite=True)
    with pytest.raises(
        UsageError,
        match=r"cannot be continued or changed without its checkpoints.*name=one-2.*--overwrite",
    ):
        check_run(run, more, overwrite=False)
    run.checkpoint(5).mkdir(parents=True)
    check_run(run, more, overwrite=False)


def test_an_average_of_fewer_checkpoints_than_asked_for_says_so(tmp_path, recipe, caplog):
    run, (model, optimizer) = Run(tmp_path), trained()
    for step in (2, 4):
        save_checkpoint(run, step, model, optimizer, {"step": step, "best_step": 2})
    for average in (2, 3):
        training = recipe.training.model_copy(update={"save_every": 2, "average": average})
        write_final_weights(run, recipe.model_copy(update={"training": training}))
    assert [record.getMessage() for record in caplog.records] == [
        "only 2 checkpoints are averaged: there are no more, but training.average is 3"
    ]
    assert run.weights_of("average").exists()
    # the average of a run that goes on without one is no longer that of its last weights
    alone = recipe.training.model_copy(update={"save_every": 2, "average": 1, "use": "last"})
    write_final_weights(run, recipe.model_copy(update={"training": alone}))
    with pytest.raises(SynmtError, match="there are no averaged weights"):
        run.weights_of("average")


def test_overwriting_removes_a_link_and_not_what_is_behind_it(tmp_path, recipe):
    run, elsewhere = Run(tmp_path / "one"), tmp_path / "elsewhere"
    begin_run(run, recipe, PREPARED, overwrite=False)
    elsewhere.mkdir()
    (run.folder / "checkpoints").symlink_to(elsewhere)
    begin_run(run, recipe, PREPARED, overwrite=True)
    assert elsewhere.is_dir()
    assert sorted(path.name for path in run.folder.iterdir()) == ["recipe.yaml", "run.json"]


def test_a_run_of_another_format_is_not_gone_on_with(tmp_path, recipe):
    (tmp_path / "run.json").write_text(json.dumps({"format": 99, "synmt": "9.9"}), encoding="utf-8")
    message = r"format 99; this synmt reads format 1. Use the synmt that made it \(9.9\)"
    for overwrite in (False, True):
        with pytest.raises(SynmtError, match=message):
            check_run(Run(tmp_path), recipe, overwrite=overwrite)


def test_a_run_from_before_auto_has_the_recipe_that_it_was_trained_with(tmp_path):
    values = {"name": "old", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    recipe = check_recipe(values, where="old")
    run = Run(tmp_path / "old")
    run.folder.mkdir()
    # the default of both sides was `compact`, and nothing read trees of a German target
    before = recipe_values(recipe)
    before["target_parser"]["model"] = "compact"
    (run.folder / "recipe.yaml").write_text(dump_yaml(before), encoding="utf-8")
    assert run.recipe() == recipe


def test_a_run_without_its_recipe_is_broken(tmp_path, recipe):
    run = Run(tmp_path)
    run.write_info(status="training")
    with pytest.raises(SynmtError, match=r"recipe.yaml is missing"):
        check_run(run, recipe, overwrite=False)


def test_a_run_whose_facts_may_not_be_read_says_why(tmp_path):
    # root may read every file, but no one reads a folder as a file
    (tmp_path / "run.json").mkdir()
    with pytest.raises(
        SynmtError,
        match=r"run.json: cannot read the file \(Is a directory\). Check its permissions",
    ):
        Run(tmp_path).info()
