"""`synmt train` when it is killed, interrupted, started twice, or run with wrong values."""

import json
import math
import re
import shutil
import signal
from itertools import pairwise

import pytest
from same_runs import StopAfter, assert_same_run, play
from tiny import TRAINING, fail, snapshot, succeed, synmt, write_corpus, write_recipe
from torch.distributed import HashStore

from synmt.errors import SynmtError
from synmt.files.writing import locked, remove
from synmt.training import grid, pipeline
from synmt.training.distributed import Processes
from synmt.training.grid import GridRecord
from synmt.training.records import RunRecord, StartRecord

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("offline")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a folder with a tiny corpus and its recipe."""
    folder = tmp_path_factory.mktemp("train")
    write_corpus(folder / "text")
    write_recipe(folder / "tiny.yaml", folder / "text")
    return folder


def scene(place, name, *overrides, data="data", **trap):
    """Train the tiny recipe into runs/NAME."""
    folders = ["--runs", place / "runs", "--data", place / data]
    arguments = ["train", place / "tiny.yaml", f"name={name}", *folders, *overrides]
    return {"arguments": [*map(str, arguments)], **trap}


QUICK = "training.validation_beam_size=0"
# killed at the beginning, in the middle of writing a checkpoint, and towards the end, over and
# over: each life begins with what the last one left
LIVES = """
    early update:1 update:3 write:2 log:2 remove:1
    late update:5 write:3 remove:2 log:1
    cat update:3 rename:3 renamed:3 sync:7
"""


def test_a_run_that_is_killed_at_any_moment_ends_bit_for_bit_as_one_that_is_not(place):
    scenes = [scene(place, "whole", QUICK)]
    for line in LIVES.strip().splitlines():
        name, *kills = line.split()
        scenes += [scene(place, name, QUICK, kill=moment(kill)) for kill in kills]
        scenes += [scene(place, name, QUICK)]
    whole, *played = play(*scenes)
    assert whole["code"] == 0, whole["errors"]
    for asked, done in zip(scenes[1:], played, strict=True):
        assert done["code"] == (-signal.SIGKILL if "kill" in asked else 0), (asked, done)
    for name in ("early", "late", "cat"):
        assert_same_run(place / "runs" / "whole", place / "runs" / name)
    assert not list(place.rglob(".*"))


def moment(text):
    event, number = text.split(":")
    return [event, int(number)]


def test_a_restart_by_torchrun_does_not_overwrite_what_it_began(finished):
    recipe, store, starts = write_finished(finished, finished / "text", "test"), HashStore(), []
    folders = {"runs": finished / "runs", "data": finished / "data", "overwrite": True}
    # torchrun keeps the store when it starts the processes again, and makes another one for another
    # command
    for processes in (Processes(store=store), Processes(store=store), Processes(store=HashStore())):
        which = {"processes": processes, "stop": StopAfter(5)}
        records = pipeline.train(recipe, ["name=again", "training.max_steps=9"], **folders, **which)
        starts += [record.step for record in records if isinstance(record, StartRecord)]
    assert starts[0] == starts[2] == 0 < starts[1]


def test_a_kill_while_parsing_or_preparing_is_made_good(place):
    parsed = ("parser.control=none", "training.max_steps=4")
    again = scene(place, "killed", *parsed, data="other")
    traps = [{**again, "rename": name} for name in ("corpus.json", ".conllu.gz")]
    played = play(scene(place, "parsed", *parsed), *traps, again)
    assert [done["code"] for done in played] == [0, *[-signal.SIGKILL] * 2, 0], played
    assert_same_run(place / "runs" / "parsed", place / "runs" / "killed")


def test_a_full_disk_leaves_the_last_checkpoint_and_the_run_goes_on_when_there_is_room(place):
    again = scene(place, "full", QUICK)
    full, again, _ = play({**again, "full": 5}, again, scene(place, "whole", QUICK))
    assert (full["code"], again["code"]) == (1, 0)
    assert re.search(r"step-00000006.*: cannot write: File too large\. Make room", full["errors"])
    assert "continuing from step 4" in again["errors"]
    assert_same_run(place / "runs" / "whole", place / "runs" / "full")


def test_two_trainings_in_one_folder_are_refused(place):
    folder = place / "runs" / "busy"
    folder.mkdir(parents=True)
    with locked(folder, "this run"):
        for more in ((), ("--overwrite",)):
            errors = train(place, "tiny.yaml", "name=busy", *more, code=1)
            assert "another process is writing this run" in errors
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_ctrl_c_and_sigterm_save_the_step_and_the_same_command_goes_on(place):
    steps = ("training.max_steps=30", "training.validate_every=15", "training.log_every=2")
    again = scene(place, "again", *steps)
    signals = [{**again, "signal": number} for number in (2, 15)]
    played = play(scene(place, "long", *steps), *signals, again)
    assert [done["code"] for done in played] == [0, 130, 130, 0], played
    for first, second in pairwise(played[1:]):
        assert "is saved. Run the same command to resume" in first["errors"]
        assert first["errors"].endswith("synmt: interrupted\n")
        assert "continuing from step " in second["errors"]
    assert_same_run(place / "runs" / "long", place / "runs" / "again")


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize("seeds", [[], ["--seeds", 2]])
def test_advice_does_not_restart_what_was_stopped_or_failed(
    place, tmp_path, monkeypatch, overwrite, seeds
):
    def fail_to_train(*_, **__):
        raise SynmtError("no space", do="Make room, and run the same command again")
        yield

    monkeypatch.chdir(tmp_path)
    again = "Run the same command" + " without --overwrite" * len(overwrite)
    given = ("train", place / "tiny.yaml", *seeds, *overwrite, "--data", place / "data")
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "train_prepared", fail_to_train)
        errors = fail(1, *given)
    assert ("Leave out --overwrite to resume the run" in errors) == bool(overwrite)
    assert not seeds or f"2 of 2 runs failed. {again}" in errors
    alone, many = RunRecord(place, "interrupted", 5), GridRecord("interrupted", [place], [], {})
    monkeypatch.setattr(pipeline, "train", lambda *_, **__: (yield alone))
    monkeypatch.setattr(grid, "train_grid", lambda *_, **__: (yield many))
    done = "finished runs: 1" if seeds else "step 5 is saved"
    errors = fail(130, *given)
    assert f"{done}. {again}" in errors
    assert " to resume\n" in errors


def train(place, *arguments, code=0):
    """Train in a folder; gives standard error."""
    done = synmt("train", *arguments, "--data", place / "data", cwd=place)
    assert done.returncode == code, done.stderr
    return done.stderr.decode()


TEXT = "source: text/train.en, target: text/train.de"
PARSED = f"{{{TEXT}, source_parses: text/train.en.conllu}}"
CORPUS = f"{{train: {PARSED}, valid: {PARSED}, test: {{one: {{{TEXT}}}}}}}"
WRONG = f"""
2 | training.max_step=100 | Did you mean 'training.max_steps'?
2 | syntax.variants.0.varience=2 | tiny.yaml: syntax.variants
2 | corpus.folder=nowhere | nowhere: corpus.folder: there is no such folder.
1 | filters.max_words=1 | no pair of the training text is kept
1 | parser.control=none  parser.model=nowhere | nowhere
2 | parser.control=none  parser.model=compact  source=de  target=en | no compact model for the lan
2 | training.device=toaster | there is no device 'toaster'
1 | --runs  text/test.en | cannot write: Not a directory
2 | corpus={CORPUS}  parser.control=none | there are trees for train, valid, but not for one
"""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_what_cannot_work_is_one_message_and_leaves_no_run(place, line):
    code, arguments, message = line.split(" | ")
    assert message in train(
        place, "tiny.yaml", "name=wrong", *arguments.split("  "), code=int(code)
    )
    assert not (place / "runs" / "wrong").exists()


# of the test set, too, before training, where train and valid are prepared
@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("train.de", b"1\n", "train.en has 32 lines, "),
        ("train.en.conllu", b"1\n", "train.en.conllu"),
        ("train.en", b"\xe4\n" * 32, "line 1 is not UTF-8"),
        ("test.de", b"1\n", "test.de has 1. Both sides"),
        ("test.en.conllu", b"", "test.en: parser.control is gold, but this text comes without tr"),
    ],
)
def test_text_that_cannot_be_read_is_named(tmp_path, file, content, message):
    text = write_corpus(tmp_path / "text")
    write_recipe(tmp_path / "tiny.yaml", text)
    succeed("prepare", "tiny.yaml", cwd=tmp_path)
    (text / file).write_bytes(content)
    if not content:
        (text / file).unlink()
    assert message in train(tmp_path, "tiny.yaml", code=1 if content else 2)
    assert not (tmp_path / "runs").exists()


def test_the_table_of_prepared_text_is_drawn_once_and_a_plain_system_is_not_parsed(place):
    plain = ("syntax.variants=[]", "parser.control=none", "filters.max_words=99")
    first, second = (
        train(place, "tiny.yaml", f"name={name}", "training.max_steps=1", *plain)
        for name in ("first", "second")
    )
    assert ("kept" in first, "kept" in second, "parse:" in first) == (True, False, False)


# runs that have finished


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Train a plain system with one test set, given file by file."""
    folder = tmp_path_factory.mktemp("finished")
    write_finished(folder, write_corpus(folder / "text"), "test")
    train(folder, "tiny.yaml")
    # what is made again needs neither the prepared text nor, but for the weights, the checkpoints
    shutil.rmtree(folder / "data")
    return folder


def write_finished(folder, text, *tests):
    """Write a recipe with these test sets."""
    train, valid, *tested = (
        {"source": f"{text / name}.en", "target": f"{text / name}.de"}
        for name in ("train", "valid", *tests)
    )
    corpus = {"train": train, "valid": valid, "test": dict(zip(tests, tested, strict=True))}
    plain = {"parser": {}, "syntax": {"variants": []}, "training": {**TRAINING, "max_steps": 2}}
    return write_recipe(folder / "tiny.yaml", text, corpus=corpus, **plain)


@pytest.mark.parametrize(
    "removed",
    ["tests", "tests/test/hypothesis.txt", "tests/test/scores.json", "model.safetensors"],
)
def test_a_finished_run_gets_what_it_lacks_again(finished, removed):
    run = finished / "runs" / "tiny"
    write_finished(finished, finished / "text", "test")
    before = snapshot(run)
    remove(run / removed)
    errors = train(finished, "tiny.yaml")
    assert "tiny has finished already, after 2 steps" in errors
    assert "train:" not in errors
    after = snapshot(run)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} <= {"tests/test/cost.json"}


def test_a_run_that_is_longer_than_its_new_recipe_is_left_alone(finished):
    write_finished(finished, finished / "text", "test")
    before = snapshot(finished / "runs/tiny")
    message = "training.max_steps is 1, and the run is already at step 2"
    for more in ((), ("--dry-run",)):
        assert message in train(finished, "tiny.yaml", "training.max_steps=1", *more, code=2)
    assert snapshot(finished / "runs/tiny") == before


def test_a_finished_run_translates_test_sets_that_are_new_or_have_changed(finished):
    text, tests = finished / "text", finished / "runs" / "tiny" / "tests"
    for language in ("en", "de"):
        shutil.copy(text / f"valid.{language}", text / f"later.{language}")
    recipe = write_finished(finished, text, "test", "later")
    (text / "later.de").write_text("Der Affe.\n")
    assert "later.en has 4 lines" in train(finished, "tiny.yaml", code=1)
    shutil.copy(text / "valid.de", text / "later.de")
    assert "later: bleu" in train(finished, "tiny.yaml")
    assert (tests / "later/reference.txt").read_bytes() == (text / "valid.de").read_bytes()
    card = (tests.parent / "README.md").read_text(encoding="utf-8")
    assert "| later | bleu |" in card
    assert "32 sentence pairs" in card
    # other files under the same name are another test set
    recipe.write_text(recipe.read_text().replace("later.", "valid."), encoding="utf-8")
    (text / "test.de").write_text("Ein anderer Satz.\n" * 4)
    plan = succeed("train", recipe, "--dry-run", cwd=finished).stdout.decode()
    assert re.search(
        r"translate the test sets of runs/tiny +to do +(test, later|later, test)", plan
    )
    train(finished, "tiny.yaml")
    assert (tests / "test/reference.txt").read_bytes() == (text / "test.de").read_bytes()
    # without a record, as in runs of earlier versions, nothing is known to have changed
    (tests / "test" / "made_from.json").unlink()
    (text / "test.de").write_text("Noch ein Satz.\n" * 4)
    train(finished, "tiny.yaml")
    assert (tests / "test/reference.txt").read_bytes() != (text / "test.de").read_bytes()


def test_any_metric_chooses_the_best_checkpoint_and_the_log_keeps_samples(place):
    changes = ("training.best=ter", "training.validate_every=2", "training.validation_beam_size=1")
    done = synmt("-v", *scene(place, "ter", *changes)["arguments"])
    assert done.returncode == 0, done.stderr
    log = (place / "runs" / "ter" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    found = [record for record in map(json.loads, log) if record["kind"] == "validation"]
    scores = [record["scores"]["ter"] for record in found]
    assert len(scores) > 1
    lower = [score < min(scores[:before], default=math.inf) for before, score in enumerate(scores)]
    assert [record["best"] for record in found] == lower
    references = (place / "text" / "valid.de").read_text(encoding="utf-8").splitlines()
    for record in found:
        assert [pair[0] for pair in record["samples"]] == references[:3]
        assert f"  translation  {record['samples'][0][1]}" in done.stderr.decode()
