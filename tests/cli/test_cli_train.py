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
from synmt.files.writing import locked
from synmt.run import Run
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


@pytest.fixture(scope="module")
def stopped(place):
    """Send both signals to runs of many steps, and start these again."""
    steps = ("training.max_steps=40", "training.validate_every=20", "training.log_every=2")
    names = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
    scenes = [scene(place, "long", *steps)]
    for name, number in names.items():
        scenes += [scene(place, name, *steps, signal=number), scene(place, name, *steps)]
    whole, *played = play(*scenes)
    assert whole["code"] == 0, whole["errors"]
    return dict(zip(names, zip(played[::2], played[1::2], strict=True), strict=True))


@pytest.mark.parametrize("name", ["interrupt", "terminate"])
def test_ctrl_c_and_sigterm_save_the_step_and_the_same_command_goes_on(place, stopped, name):
    asked, again = stopped[name]
    assert asked["code"] == 130
    assert "stopping after this step (a second signal: at once) ..." in asked["errors"]
    assert "is saved. Run the same command to resume" in asked["errors"]
    assert asked["errors"].endswith("synmt: interrupted\n")
    assert "Traceback" not in asked["errors"]
    assert again["code"] == 0, again["errors"]
    assert "continuing from step " in again["errors"]
    assert_same_run(place / "runs" / "long", place / "runs" / name)


@pytest.mark.parametrize(
    ("options", "again"), [([], ""), (["--overwrite"], " without --overwrite")]
)
def test_what_was_stopped_is_not_told_to_begin_again(place, monkeypatch, options, again):
    stopped = (
        iter([RunRecord(place, "interrupted", 5)]),
        iter([GridRecord("interrupted", [place], [], {})]),
    )
    monkeypatch.setattr(pipeline, "train", lambda *_, **__: (yield from stopped[0]))
    monkeypatch.setattr(grid, "train_grid", lambda *_, **__: (yield from stopped[1]))
    errors = fail(130, "train", place / "tiny.yaml", *options)
    assert f"step 5 is saved. Run the same command{again} to resume" in errors
    errors = fail(130, "train", place / "tiny.yaml", "--seeds", 2, *options)
    assert f"1 run has finished. Run the same command{again} to resume" in errors


def test_the_advice_of_a_grid_names_the_runs_that_overwrite_has_not_replaced(
    place, tmp_path, monkeypatch
):
    runs = [tmp_path / "runs" / name for name in ("tiny", "tiny-seed2", "tiny-seed3")]
    for folder in runs[:2]:
        Run(folder).write_info(status="finished")
        os.utime(folder / "run.json", (1, 1))

    def train_grid(*_, **__):
        Run(runs[0]).write_info(status="finished")
        yield GridRecord("interrupted", runs[:1], [], {})

    monkeypatch.setattr(grid, "train_grid", train_grid)
    asked = ("train", place / "tiny.yaml", "--seeds", 3, "--runs", tmp_path / "runs")
    again = (
        f"the same command without --overwrite (remove {runs[1]} first: not replaced yet) to resume"
    )
    assert f"1 run has finished. Run {again}" in fail(130, *asked, "--overwrite")
    assert "1 run has finished. Run the same command to resume" in fail(130, *asked)


@pytest.mark.parametrize(
    ("options", "failed", "more"),
    [
        ([], "", ""),
        (["--overwrite"], "", " Leave out --overwrite to resume the run instead of restarting it."),
        (["--seeds", 2], "2 of 2 runs failed. Run the same command to try them again", ""),
        (
            ["--seeds", 2, "--overwrite"],
            "2 of 2 runs failed. Run the same command without --overwrite to try them again",
            " Leave out --overwrite to resume the run instead of restarting it.",
        ),
    ],
)
def test_the_advice_of_an_error_in_training_does_not_begin_the_run_anew(
    place, tmp_path, monkeypatch, options, failed, more
):
    def train_prepared(*_, **__):
        raise SynmtError("no space", do="Make room, and run the same command again")
        yield

    monkeypatch.setattr(pipeline, "train_prepared", train_prepared)
    monkeypatch.chdir(tmp_path)
    errors = fail(1, "train", place / "tiny.yaml", *options, "--data", place / "data")
    assert errors.endswith(f"no space. Make room, and run the same command again.{more}\n")
    assert f"error: {failed}" in errors


def test_a_restart_by_torchrun_does_not_overwrite_what_it_began(finished):
    recipe, store, starts = write_finished(finished, finished / "text", "test"), HashStore(), []
    how = {"runs": finished / "runs", "data": finished / "data", "overwrite": True}
    # torchrun keeps the store when it starts the processes again, and makes another one for another
    # command
    for processes in (Processes(store=store), Processes(store=store), Processes(store=HashStore())):
        which = {"processes": processes, "stop": StopAfter(5)}
        records = pipeline.train(recipe, ["name=again", "training.max_steps=9"], **how, **which)
        starts += [record.step for record in records if isinstance(record, StartRecord)]
    assert starts[0] == starts[2] == 0 < starts[1]


def test_a_run_that_is_longer_than_its_new_recipe_is_left_alone(finished):
    recipe, name = write_finished(finished, finished / "text", "test"), "name=short"
    succeed("train", recipe, name, cwd=finished)
    before = (finished / "runs/short/recipe.yaml").read_bytes()
    for more in ((), ("--dry-run",)):
        message = fail(2, "train", recipe, name, "training.max_steps=1", *more, cwd=finished)
        assert (
            "is already at step 2; set training.max_steps to 2 (to end it there) or more, not 1"
            in message
        )
    assert (finished / "runs/short/recipe.yaml").read_bytes() == before
    assert b"finished already" in succeed("train", recipe, name, cwd=finished).stderr


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


def train(place, *arguments):
    return succeed(
        "train", *arguments, "--runs", place / "runs", "--data", place / "data", cwd=place
    )


def refuse(code, place, *arguments):
    """Train with what cannot work; gives standard error."""
    return fail(
        code, "train", *arguments, "--runs", place / "runs", "--data", place / "data", cwd=place
    )


def test_two_trainings_in_one_folder_are_refused(place):
    folder = place / "runs" / "busy"
    folder.mkdir(parents=True)
    with locked(folder, "this run"):
        errors = refuse(1, place, "tiny.yaml", "name=busy")
        refuse(1, place, "tiny.yaml", "name=busy", "--overwrite")
    assert "another process is writing this run" in errors
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_data_that_are_missing_are_named_file_by_file(place, monkeypatch):
    monkeypatch.delenv("SYNMT_DATA", raising=False)
    errors = refuse(1, place, ROOT / "recipes" / "nc11-pascal.yaml")
    for split in ("train", "newstest2015", "newstest2016"):
        assert f"{split}.en" in errors
        assert f"{split}.de" in errors
    folder = Path(os.environ["SYNMT_CACHE"]) / "corpora" / "nc11"
    for part in (
        "training-parallel-nc-v11.tgz",
        "plain or as `.gz`, into",
        str(folder),
        "SYNMT_DATA",
    ):
        assert part in errors
    # nothing has begun, so that another corpus can still be given
    assert not (place / "runs" / "nc11-pascal").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["training.max_step=100"], 2, "training has no key 'max_step'. Keys: accumulate, "),
        (["training.max_step=100"], 2, "Did you mean 'max_steps'?"),
        (["training.max_steps=many"], 2, "training.max_steps: "),
        (["syntax.variants.0.heads=5"], 2, "pascal needs 5 heads of layer 1, but 4 of 4 are free"),
        (["syntax.variants.0.layers=[3]"], 2, "there is no layer 3. This model has layers 1 to 1"),
        (["syntax.variants.0.name=pascall"], 2, "there is no variant 'pascall'"),
        (["syntax.variants.0.varience=2"], 2, "has no option 'varience'"),
        (["model.model_dim=18"], 2, "cannot be divided among 4 heads"),
        (["corpus.folder=nowhere"], 2, "nowhere: corpus.folder: there is no such folder."),
        (["filters.max_words=1"], 1, "the filters remove the whole training text"),
        (["parser.control=none", "parser.model=nowhere"], 1, "nowhere"),
        (
            ["parser.control=none", "parser.model=compact", "source=de", "target=en"],
            2,
            "no compact model for the language 'de'",
        ),
        (["training.device=toaster"], 2, "there is no device 'toaster'"),
    ],
)
def test_what_cannot_work_is_one_message_and_leaves_no_run(place, arguments, code, said):
    assert said in refuse(code, place, "tiny.yaml", "name=wrong", *arguments)
    assert not (place / "runs" / "wrong").exists()


def test_trees_of_two_origins_are_not_mixed(place):
    text = place / "text"
    files = "{{source: {0}.en, target: {0}.de{1}}}".format
    parses = ", source_parses: {}.en.conllu".format
    splits = {"train": True, "valid": True, "test": False}
    train_, valid, test = (
        files(text / name, parses(text / name) if own else "") for name, own in splits.items()
    )
    corpus = f"corpus={{train: {train_}, valid: {valid}, test: {{one: {test}}}}}"
    errors = refuse(2, place, "tiny.yaml", "name=wrong", corpus, "parser.control=none")
    assert "there are trees for train, valid, but not for one" in errors
    assert not (place / "runs" / "wrong").exists()


def test_missing_trees_of_the_test_set_are_reported_before_training(tmp_path):
    text = write_corpus(tmp_path / "text")
    (text / "test.en.conllu").unlink()
    errors = refuse(2, tmp_path, write_recipe(tmp_path / "tiny.yaml", text))
    assert "test.en: parser.control is gold, but this text comes without trees" in errors
    assert not (tmp_path / "runs").exists()
    # a plain model does not ask for them
    train(tmp_path, "tiny.yaml", "syntax.variants=[]", "training.max_steps=2")


def test_a_test_set_of_unequal_sides_is_named_before_training_also_where_all_is_prepared(tmp_path):
    text = write_corpus(tmp_path / "text")
    recipe = write_recipe(tmp_path / "tiny.yaml", text)
    succeed("prepare", recipe, cwd=tmp_path)
    lines = (text / "test.de").read_text().splitlines(keepends=True)
    (text / "test.de").write_text("".join(lines[:3]))
    errors = fail(1, "train", recipe, cwd=tmp_path)
    assert f"{text / 'test.en'} has 4 lines, {text / 'test.de'} has 3. Both sides" in errors
    assert not (tmp_path / "runs").exists()


def test_a_test_set_without_lines_is_named_before_training(tmp_path):
    text = write_corpus(tmp_path / "text")
    for language in ("en", "de"):
        (text / f"test.{language}").write_text("")
    recipe = write_recipe(tmp_path / "tiny.yaml", text, syntax={})
    errors = fail(1, "train", recipe, cwd=tmp_path)
    assert (
        f"{text / 'test.en'}: the test set has no lines. Fill both files, or remove the test set."
        in errors
    )
    assert not (tmp_path / "runs").exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Train a plain system with one test set, given file by file."""
    folder = tmp_path_factory.mktemp("finished")
    text = write_corpus(folder / "text")
    recipe = write_finished(folder, text, "test")
    succeed("train", recipe, cwd=folder)
    # what is made again needs neither the prepared text nor, but for the weights, the checkpoints
    shutil.rmtree(folder / "data")
    return folder


SIDES, LEARNT = (("source", "en"), ("target", "de")), ("train", "valid")


def write_finished(folder, text, *tests):
    """Write a recipe with these test sets."""
    files = {
        name: {side: f"{text / name}.{language}" for side, language in SIDES}
        for name in (*LEARNT, *tests)
    }
    corpus = {name: files[name] for name in LEARNT} | {
        "test": {name: files[name] for name in tests}
    }
    plain = {"parser": {}, "syntax": {"variants": []}, "training": {**TRAINING, "max_steps": 2}}
    return write_recipe(folder / "tiny.yaml", text, corpus=corpus, **plain)


@pytest.mark.parametrize(
    "removed", ["tests", "tests/test/hypothesis.txt", "tests/test/scores.json"]
)
def test_a_finished_run_gets_its_missing_translations_again(finished, removed):
    run = finished / "runs" / "tiny"
    recipe = write_finished(finished, finished / "text", "test")
    before = untimed(run)
    if (run / removed).is_dir():
        shutil.rmtree(run / removed)
    else:
        (run / removed).unlink()
    done = succeed("train", recipe, cwd=finished)
    assert b"tiny has finished already, after 2 steps" in done.stderr
    assert b"test: bleu" in done.stderr
    assert untimed(run) == before


def untimed(run):
    """Read all files but what the translations cost."""
    return {name: data for name, data in snapshot(run).items() if not name.endswith("cost.json")}


def test_a_finished_run_gets_its_missing_weights_again(finished):
    run = finished / "runs" / "tiny"
    recipe = write_finished(finished, finished / "text", "test")
    before = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").unlink()
    done = succeed("train", recipe, cwd=finished)
    assert b"model.safetensors was missing and has been written again" in done.stderr
    assert (run / "model.safetensors").read_bytes() == before


def test_a_finished_run_translates_a_test_set_that_the_recipe_names_later(finished):
    text, run = finished / "text", finished / "runs" / "tiny"
    for language in ("en", "de"):
        shutil.copy(text / f"valid.{language}", text / f"later.{language}")
    recipe = write_finished(finished, text, "test", "later")
    (text / "later.de").write_text("Der Affe.\n")
    assert "later.en has 4 lines" in fail(1, "train", recipe, cwd=finished)
    shutil.copy(text / "valid.de", text / "later.de")
    for _ in range(2):
        done = succeed("train", recipe, cwd=finished)
        assert b"train:" not in done.stderr
        assert b"later: bleu" in done.stderr
    assert (run / "tests" / "later" / "reference.txt").read_bytes() == (
        text / "valid.de"
    ).read_bytes()
    # other files under the same name are another test set
    shutil.copy(text / "test.de", text / "other.de")
    shutil.copy(text / "test.en", text / "other.en")
    recipe.write_text(
        recipe.read_text().replace("later.en", "other.en").replace("later.de", "other.de")
    )
    succeed("train", recipe, cwd=finished)
    assert (run / "tests" / "later" / "reference.txt").read_bytes() == (
        text / "test.de"
    ).read_bytes()


@pytest.mark.parametrize("command", ["train", "prepare"])
def test_an_error_of_a_variant_names_the_recipe(place, command):
    errors = fail(2, command, place / "tiny.yaml", "syntax.variants.0.varience=2")
    assert f"{place / 'tiny.yaml'}: syntax.variants.0" in errors


def test_debug_shows_the_traceback(place):
    done = synmt("--debug", "train", place / "tiny.yaml", "training.max_step=100")
    assert done.returncode == 2
    assert b"Traceback" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("train.de", b"Der Affe.\n", 1, "32 lines"),
        ("train.en", None, 1, "line 2 is not UTF-8"),
        ("train.en.conllu", b"1\tThe\t_\n", 1, "train.en.conllu"),
        ("test.de", b"Der Affe.\n", 1, "lines"),
    ],
)
def test_text_that_cannot_be_read_is_named(tmp_path, name, content, code, said):
    text = write_corpus(tmp_path / "text")
    if content is None:
        lines = (text / name).read_bytes().split(b"\n")
        content = b"\n".join([lines[0], b"b\xe4d", *lines[2:]])
    (text / name).write_bytes(content)
    recipe = write_recipe(tmp_path / "bad.yaml", text, training={**TRAINING, "max_steps": 1})
    errors = refuse(code, tmp_path, recipe)
    assert said in errors
    assert name.split(".")[0] in errors


def test_the_help_page_has_an_example():
    assert b"Example: synmt train multi30k-pascal" in succeed("train", "--help").stdout


def test_a_plain_system_needs_no_parser(place):
    plain = ("name=plain", "syntax.variants=[]", "parser.control=none", "training.max_steps=2")
    assert b"parse:" not in train(place, "tiny.yaml", *plain).stderr


def test_the_table_of_prepared_text_is_drawn_once(place):
    plain = (
        "syntax.variants=[]",
        "parser.control=none",
        "filters.max_words=99",
        "training.max_steps=1",
    )
    assert b"kept" in train(place, "tiny.yaml", "name=first", *plain).stderr
    assert b"kept" not in train(place, "tiny.yaml", "name=second", *plain).stderr


def test_a_finished_run_scores_a_test_set_again_whose_text_has_changed(finished):
    run, reference = finished / "runs" / "tiny", finished / "text" / "test.de"
    recipe = write_finished(finished, finished / "text", "test")
    succeed("train", recipe, cwd=finished)
    lines = reference.read_text(encoding="utf-8").splitlines()
    reference.write_text("\n".join(["Ein anderer Satz.", *lines[1:]]) + "\n", encoding="utf-8")
    assert (
        "translate and score test"
        in succeed("train", recipe, "--dry-run", cwd=finished).stdout.decode()
    )
    done = succeed("train", recipe, cwd=finished)
    assert "the files of the test set test have changed" in done.stderr.decode()
    assert (
        (run / "tests" / "test" / "reference.txt")
        .read_text(encoding="utf-8")
        .startswith("Ein anderer Satz.\n")
    )
    assert "have changed" not in succeed("train", recipe, cwd=finished).stderr.decode()
    # without a record, as in runs of earlier versions, and without the text, nothing is known to
    # have changed
    (run / "tests" / "test" / "made_from.json").unlink()
    assert "have changed" not in succeed("train", recipe, cwd=finished).stderr.decode()


def test_training_that_starts_again_for_lack_of_a_checkpoint_says_so(place):
    names = (
        "training.max_steps=4",
        "training.save_every=4",
        "training.validate_every=4",
        "training.log_every=1",
    )
    killed, again = play(
        scene(place, "lost", *names, kill=["update", 3]), scene(place, "lost", *names)
    )
    assert killed["code"] == -signal.SIGKILL
    assert "lost has no checkpoint, so training starts again from the first step" in again["errors"]


def test_a_run_folder_that_cannot_be_written_is_refused_before_anything_is_prepared(tmp_path):
    recipe = write_recipe(tmp_path / "tiny.yaml", write_corpus(tmp_path / "text"))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "taken").touch()
    for arguments, where in (
        (["name=taken"], "runs/taken"),
        (["--runs", "text/test.en"], "text/test.en"),
    ):
        errors = fail(1, "train", recipe, *arguments, cwd=tmp_path)
        assert f"{where}: is a file, not a folder. Choose another name or folder." in errors
    assert not (tmp_path / "data").exists()
