"""`synmt train` when it is killed, interrupted, started twice, or run with wrong values."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from places import ROOT
from same_runs import StopAfter, assert_same_run, play
from tiny import TRAINING, fail, snapshot, succeed, synmt, write_corpus, write_recipe
from torch.distributed import HashStore

from synmt.errors import SynmtError
from synmt.files.links import remove
from synmt.files.writing import locked
from synmt.run_folder import Run
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


# one of each kind at the beginning, in the middle of writing a checkpoint, and towards the end
MOMENTS = {"update": (1, 5), "write": (4, 7), "log": (2, 5), "remove": (1, 2)}


def test_a_run_that_is_killed_at_any_moment_ends_bit_for_bit_as_one_that_is_not(place):
    runs = [
        (f"{event}-{number}", [event, number])
        for event, numbers in MOMENTS.items()
        for number in numbers
    ]
    scenes = [scene(place, "whole")]
    for name, kill in runs:
        scenes += [scene(place, name, kill=kill), scene(place, name)]
    # killed over and over: each life begins with what the last one left
    lives = [["update", 3], ["update", 3], ["rename", 3], ["renamed", 3], ["sync", 7]]
    scenes += [*[scene(place, "cat", kill=kill) for kill in lives], scene(place, "cat")]
    whole, *played = play(*scenes)
    assert whole["code"] == 0, whole["errors"]
    assert MOMENTS.keys() <= whole["events"].keys()
    for asked, done in zip(scenes[1:], played, strict=True):
        assert done["code"] == (-signal.SIGKILL if "kill" in asked else 0), (asked, done)
    for name in [*(name for name, _ in runs), "cat"]:
        assert_same_run(place / "runs" / "whole", place / "runs" / name)
    assert not list(place.rglob(".*"))


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
    parsed = ("parser.control=none",)
    moments = {"trees": ".conllu.gz", "corpus": "corpus.json"}
    scenes = [scene(place, "parsed", *parsed)]
    for name, pattern in moments.items():
        own = {"data": f"data-{name}"}
        names = (f"killed-{name}", *parsed)
        scenes += [scene(place, *names, rename=pattern, **own), scene(place, *names, **own)]
    whole, *played = play(*scenes)
    assert whole["code"] == 0, whole["errors"]
    for name, first, again in zip(moments, played[::2], played[1::2], strict=True):
        assert first["code"] == -signal.SIGKILL, (name, first)
        assert again["code"] == 0, (name, again)
        assert_same_run(place / "runs" / "parsed", place / "runs" / f"killed-{name}")


def test_a_full_disk_leaves_the_last_checkpoint_and_the_run_goes_on_when_there_is_room(place):
    full, again = play(scene(place, "full", full=5), scene(place, "full"))
    assert full["code"] == 1
    for part in ("step-00000006", "cannot write", "File too large", "Make room"):
        assert part in full["errors"]
    assert "Traceback" not in full["errors"]
    assert again["code"] == 0
    assert "continuing from step 4" in again["errors"]
    whole = place / "runs" / "whole"
    if not whole.exists():
        assert play(scene(place, "whole"))[0]["code"] == 0
    assert_same_run(whole, place / "runs" / "full")


def test_two_trainings_in_one_folder_are_refused(place):
    folder = place / "runs" / "busy"
    folder.mkdir(parents=True)
    with locked(folder, "this run"):
        errors = train(place, "tiny.yaml", "name=busy", code=1)
        train(place, "tiny.yaml", "name=busy", "--overwrite", code=1)
    assert "another process is writing this run" in errors
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_ctrl_c_and_sigterm_save_the_step_and_the_same_command_goes_on(place):
    steps = ("training.max_steps=40", "training.validate_every=20", "training.log_every=2")
    scenes = [scene(place, "long", *steps)]
    for number in (signal.SIGINT, signal.SIGTERM):
        scenes += [scene(place, f"on-{number}", *steps, signal=number)]
        scenes += [scene(place, f"on-{number}", *steps)]
    whole, *played = play(*scenes)
    assert whole["code"] == 0, whole["errors"]
    for number, interrupted, again in zip(
        (signal.SIGINT, signal.SIGTERM), played[::2], played[1::2], strict=True
    ):
        assert (interrupted["code"], again["code"]) == (130, 0), again["errors"]
        assert "stopping after this step (a second signal: at once) ..." in interrupted["errors"]
        assert "is saved. Run the same command to resume" in interrupted["errors"]
        assert interrupted["errors"].endswith("synmt: interrupted\n")
        assert "continuing from step " in again["errors"]
        assert_same_run(place / "runs" / "long", place / "runs" / f"on-{number}")


def test_training_that_starts_again_for_lack_of_a_checkpoint_says_so(place):
    steps = [f"training.{key}=4" for key in ("max_steps", "save_every", "validate_every")]
    steps.append("training.log_every=1")
    scenes = [scene(place, "lost", *steps, kill=["update", 3]), scene(place, "lost", *steps)]
    killed, again = play(*scenes)
    assert killed["code"] == -signal.SIGKILL
    assert "lost has no checkpoint, so training starts again from the first step" in again["errors"]


OVERWRITE = "Leave out --overwrite to resume the run instead of restarting it."


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
@pytest.mark.parametrize("seeds", [[], ["--seeds", 2]])
def test_advice_does_not_restart_what_was_stopped_or_failed(
    place, tmp_path, monkeypatch, options, seeds
):
    def fail_to_train(*_, **__):
        raise SynmtError("no space", do="Make room, and run the same command again")
        yield

    monkeypatch.chdir(tmp_path)
    again = "the same command" + " without --overwrite" * bool(options)
    given = ("train", place / "tiny.yaml", *seeds, *options, "--data", place / "data")
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "train_prepared", fail_to_train)
        errors = fail(1, *given)
    advice = f"no space. Make room, and run the same command again. {OVERWRITE if options else ''}"
    assert errors.endswith(f"{advice.rstrip()}\n")
    assert not seeds or f"2 of 2 runs failed. Run {again} to try them again" in errors
    ends = {
        "train": (RunRecord(place, "interrupted", 5), "step 5 is saved"),
        "train_grid": (GridRecord("interrupted", [place], [], {}), "1 run has finished"),
    }
    record, done = ends["train_grid" if seeds else "train"]
    module = grid if seeds else pipeline
    monkeypatch.setattr(module, "train_grid" if seeds else "train", lambda *_, **__: (yield record))
    errors = fail(130, *given)
    assert f"{done}. Run {again}" in errors
    assert " to resume\n" in errors


def test_the_advice_of_a_grid_names_the_runs_that_overwrite_has_not_replaced(
    place, tmp_path, monkeypatch
):
    first, second = (Run(tmp_path / "runs" / name) for name in ("tiny", "tiny-seed2"))
    for run in (first, second):
        run.write_info(status="finished")
        os.utime(run.folder / "run.json", (1, 1))

    def train_grid(*_, **__):
        first.write_info(status="finished")
        yield GridRecord("interrupted", [first.folder], [], {})

    monkeypatch.setattr(grid, "train_grid", train_grid)
    given = ("train", place / "tiny.yaml", "--seeds", 3, "--runs", tmp_path / "runs")
    old = f"(remove {second.folder} first: not replaced yet) to resume"
    assert f"Run the same command without --overwrite {old}" in fail(130, *given, "--overwrite")


def train(place, *arguments, code=0):
    """Train in a folder; gives standard error."""
    done = synmt("train", *arguments, "--data", place / "data", cwd=place)
    assert done.returncode == code, done.stderr
    return done.stderr.decode()


def test_data_that_are_missing_are_named_file_by_file(place, monkeypatch):
    monkeypatch.delenv("SYNMT_DATA", raising=False)
    errors = train(place, ROOT / "recipes" / "nc11-pascal.yaml", code=1)
    names = [
        f"{split}.{language}"
        for split in ("train", "newstest2015", "newstest2016")
        for language in ("en", "de")
    ]
    folder = Path(os.environ["SYNMT_CACHE"]) / "corpora" / "nc11"
    advice = ["training-parallel-nc-v11.tgz", "plain or as `.gz`, into", str(folder), "SYNMT_DATA"]
    assert not [part for part in (*names, *advice) if part not in errors]
    # nothing has begun, so that another corpus can still be given
    assert not (place / "runs" / "nc11-pascal").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("training.max_step=100", 2, "Did you mean 'max_steps'?"),
        ("syntax.variants.0.varience=2", 2, "tiny.yaml: syntax.variants.0 "),
        ("corpus.folder=nowhere", 2, "nowhere: corpus.folder: there is no such folder."),
        ("filters.max_words=1", 1, "the filters remove the whole training text"),
        ("parser.control=none parser.model=nowhere", 1, "nowhere"),
        (
            "parser.control=none parser.model=compact source=de target=en",
            2,
            "no compact model for the language 'de'",
        ),
        ("training.device=toaster", 2, "there is no device 'toaster'"),
        ("--runs text/test.en", 1, "text/test.en: is a file, not a folder. Choose another name"),
    ],
)
def test_what_cannot_work_is_one_message_and_leaves_no_run(place, arguments, code, message):
    errors = train(place, "tiny.yaml", "name=wrong", *arguments.split(), code=code)
    assert message in errors.replace("syntax.variants[0]", "syntax.variants.0")
    assert not (place / "runs" / "wrong").exists()


def cut(name):
    """Keep one line of a file."""

    def change(text):
        path = text / name
        path.write_text(path.read_text(encoding="utf-8").split("\n")[0] + "\n", encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (cut("train.de"), 1, "train.en has 32 lines, "),
        (cut("train.en.conllu"), 1, "train.en.conllu"),
        (lambda text: (text / "train.en").write_bytes(b"a\n\xe4\n"), 1, "line 2 is not UTF-8"),
        # before training, also where train and valid are prepared
        (cut("test.de"), 1, "test.de has 1. Both sides"),
        (
            lambda text: (text / "test.en.conllu").unlink(),
            2,
            "test.en: parser.control is gold, but this text comes without trees",
        ),
    ],
    ids=["lines", "trees", "bytes", "test", "trees of the test set"],
)
def test_text_that_cannot_be_read_is_named(tmp_path, change, code, message):
    text = write_corpus(tmp_path / "text")
    write_recipe(tmp_path / "tiny.yaml", text)
    succeed("prepare", "tiny.yaml", cwd=tmp_path)
    change(text)
    assert message in train(tmp_path, "tiny.yaml", code=code)
    assert not (tmp_path / "runs").exists()


def test_trees_of_two_origins_are_not_mixed(place):
    corpus = "train: {{{}, {}}}, valid: {{{}, {}}}, test: {{one: {{{}}}}}"
    texts = [
        part
        for split, trees in (("train", True), ("valid", True), ("test", False))
        for part in (
            f"source: text/{split}.en, target: text/{split}.de",
            *[f"source_parses: text/{split}.en.conllu"] * trees,
        )
    ]
    overrides = [f"corpus={{{corpus.format(*texts)}}}", "parser.control=none"]
    errors = train(place, "tiny.yaml", "name=wrong", *overrides, code=2)
    assert "there are trees for train, valid, but not for one" in errors


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
    files = {
        name: {"source": f"{text / name}.en", "target": f"{text / name}.de"}
        for name in ("train", "valid", *tests)
    }
    corpus = {
        "train": files["train"],
        "valid": files["valid"],
        "test": {name: files[name] for name in tests},
    }
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
    assert "test: bleu" in errors
    assert "train:" not in errors
    after = snapshot(run)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} <= {"tests/test/cost.json"}


def test_a_run_that_is_longer_than_its_new_recipe_is_left_alone(finished):
    write_finished(finished, finished / "text", "test")
    before = snapshot(finished / "runs/tiny")
    message = "is already at step 2; set training.max_steps to 2 (to end it there) or more, not 1"
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
    # other files under the same name are another test set
    recipe.write_text(recipe.read_text().replace("later.", "valid."), encoding="utf-8")
    reference = text / "test.de"
    lines = reference.read_text(encoding="utf-8").splitlines()
    reference.write_text("\n".join(["Ein anderer Satz.", *lines[1:]]) + "\n", encoding="utf-8")
    plan = succeed("train", recipe, "--dry-run", cwd=finished).stdout.decode()
    for name in ("later", "test"):
        assert f"translate and score {name}" in plan
    changed = "the files of the test set test have changed"
    assert changed in train(finished, "tiny.yaml")
    for name, split in (("later", "valid"), ("test", "test")):
        expected = (text / f"{split}.de").read_bytes()
        assert (tests / name / "reference.txt").read_bytes() == expected
    assert changed not in train(finished, "tiny.yaml")
    # without a record, as in runs of earlier versions, nothing is known to have changed
    (tests / "test" / "made_from.json").unlink()
    assert changed not in train(finished, "tiny.yaml")
