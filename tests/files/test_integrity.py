"""Files of a run and of its prepared corpus that change after they were written, and links that
someone put there."""

from __future__ import annotations

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import TRAINING, snapshot, synmt, write_corpus, write_recipe

from synmt.files.checksums import RECORD

pytestmark = pytest.mark.journey

FILES = [
    "run.json",
    "source.words",
    "target.words",
    "log.jsonl",
    "model.safetensors",
    "average.safetensors",
    "tests/test/source.txt",
    "tests/test/reference.txt",
    "tests/test/hypothesis.txt",
    "tests/test/scores.json",
    "tests/test/made_from.json",
    "checkpoints/step-00000008/model.safetensors",
    "checkpoints/step-00000008/optimizer.safetensors",
    "checkpoints/step-00000008/state.json",
]
SHARDS = ("train-00000.arrow", "valid-00000.arrow", "kept.arrow", "vocabulary.words", "corpus.json")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train a tiny plain system, and gives the folder of its recipe."""
    folder = tmp_path_factory.mktemp("integrity")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(folder / "cache"))
        patch.setenv("SYNMT_OFFLINE", "1")
        text = write_corpus(folder / "text")
        write_recipe(
            folder / "tiny.yaml", text, parser={}, syntax={}, training={**TRAINING, "keep": 1}
        )
        done = synmt("train", "tiny.yaml", cwd=folder)
        assert done.returncode == 0, done.stderr.decode()
        yield folder


@pytest.fixture
def place(trained, tmp_path):
    for name in ("runs", "data", "tiny.yaml"):
        path = trained / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / name)
    return tmp_path


def said_by(place, *arguments, code):
    done = synmt(*arguments, cwd=place)
    assert done.returncode == code, done.stderr.decode()
    return done.stderr.decode()


def flip(path):
    content = bytearray(path.read_bytes())
    # within the last number or word, so that it can still be read
    content[-5 if path.suffix != ".json" else len(content) // 2] ^= 1
    path.write_bytes(content)


def go_on(place, *, code):
    return said_by(place, "train", "tiny.yaml", "training.max_steps=10", code=code)


def test_all_files_of_a_run_are_verified_when_asked(place):
    assert "broken" not in said_by(place, "score", "runs/tiny", "--verify", code=0)
    recorded = {
        path.parent / line[66:]
        for path in place.rglob(RECORD)
        for line in path.read_text().splitlines()
    }
    run = place / "runs" / "tiny"
    assert {run / name for name in FILES} - recorded == {run / "run.json"}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["score", "translate", "train"])
def test_a_flipped_bit_in_a_file_of_a_run_is_found(place, name, command):
    path = place / "runs" / "tiny" / name
    flip(path)
    if command == "train":
        said = go_on(place, code=1)
    else:
        run = ["--run", "runs/tiny"] if command == "translate" else ["runs/tiny"]
        said = said_by(place, command, *run, "--verify", code=1)
    assert f"tiny/{name}" in said
    assert "broken" in said


@pytest.mark.parametrize("name", SHARDS)
def test_a_flipped_bit_in_a_prepared_corpus_is_found_when_training_resumes(place, name):
    [folder] = (place / "data" / "prepared").iterdir()
    flip(folder / name)
    assert f"{folder.name}/{name}" in (said := go_on(place, code=1))
    assert "broken" in said


def test_small_weights_are_verified_always_and_an_edited_recipe_is_used(place):
    run = place / "runs" / "tiny"
    recipe = run / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("beam_size: 2", "beam_size: 3"))
    assert "recipe.yaml has changed since" in said_by(place, "score", "runs/tiny", code=0)
    flip(run / "model.safetensors")
    assert "broken: its content has changed" in said_by(
        place, "translate", "tiny.yaml", "--run", "runs/tiny", code=1
    )


def test_what_has_no_checksums_is_accepted(place):
    for path in place.rglob(RECORD):
        path.unlink()
    info = json.loads((place / "runs" / "tiny" / "run.json").read_text())
    del info["checksum"]
    (place / "runs" / "tiny" / "run.json").write_text(json.dumps(info))
    assert "no checksums to verify" in said_by(place, "score", "runs/tiny", "--verify", code=0)
    go_on(place, code=0)
    assert "no checksums" not in said_by(place, "score", "runs/tiny", "--verify", code=0)


def without_checksums(place):
    checkpoint = place / "runs" / "tiny" / "checkpoints" / "step-00000008"
    (checkpoint / RECORD).unlink()
    return checkpoint


CHANGES = {
    "removed": lambda tensor: None,
    "reshaped": lambda tensor: tensor.reshape(1, *tensor.shape),
    "of another type": lambda tensor: tensor.double(),
    "not a number": lambda tensor: torch.full_like(tensor, torch.nan),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("key", ["", "/step", "/exp_avg", "/exp_avg_sq"])
def test_every_weight_and_every_state_of_adam_is_checked(place, key, change):
    file = "optimizer.safetensors" if key else "model.safetensors"
    path = without_checksums(place) / file
    tensors = load_file(path)
    name = next(name for name in tensors if name.endswith(key or "output.weight"))
    changed = CHANGES[change](tensors.pop(name))
    save_file({**tensors, **({} if changed is None else {name: changed})}, path)
    assert f"{file}: the run folder is broken" in (said := go_on(place, code=1))
    assert name in said


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors"])
@pytest.mark.parametrize("left", [0, 1])
def test_tensors_that_do_not_belong_there_or_are_all_gone(place, file, left):
    path = without_checksums(place) / file
    save_file({**load_file(path), "extra": torch.zeros(1)} if left else {}, path)
    assert f"{file}: the run folder is broken" in go_on(place, code=1)


STATES = """\
step -1 "1" null 7
epoch -1 "1" null
batch -1 "1" null
best_step -1 "1" null
waited -1 "1" null
decays -1 "1" null
best_value "1" []
scaler {"scale":2.0} [] 1
unlogged [{"tokens":1}] {} [1]
unlogged_cost {"hours":1} {"seconds":"x"} []
"""
VALUES = [(key, value) for key, *values in map(str.split, STATES.splitlines()) for value in values]


@pytest.mark.parametrize(("key", "value"), VALUES)
def test_every_value_of_the_state_is_checked(place, key, value):
    path = without_checksums(place) / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: json.loads(value)}))
    said = go_on(place, code=1)
    assert all(part in said for part in ("step-00000008", "state.json", "broken", key))


@pytest.mark.parametrize("key", ["step", "epoch", "batch", "best_step", "best_value", "waited"])
def test_a_state_without_a_position_is_not_the_beginning(place, key):
    path = without_checksums(place) / "state.json"
    state = json.loads(path.read_text())
    del state[key]
    path.write_text(json.dumps(state))
    assert f"broken: state.json has no {key}" in go_on(place, code=1)


# links


@pytest.fixture
def outside(tmp_path_factory):
    """Make a folder of the user's own, with a file."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "step-00000002").mkdir()
    for name in ("bashrc", "step-00000002/notes", "scores.json", ".notes.unfinished"):
        (folder / name).write_text("mine")
    return folder


def link(path, target, *, hard=False):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    (os.link if hard else os.symlink)(target, path)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        *("run.json", "log.jsonl", "lock", "recipe.yaml", "source.words", RECORD),
        *("model.safetensors", "average.safetensors", ".run.json.x.unfinished"),
        *("tests/test/hypothesis.txt", "tests/test/scores.json", "tests/test/cost.json"),
        *("tests/test/made_from.json", f"tests/test/{RECORD}"),
    ],
)
def test_a_link_to_a_file_is_replaced_and_what_it_leads_to_stays(place, outside, name, hard):
    path = place / "runs" / "tiny" / name
    # what is read has to be right, also behind a link
    if path.exists():
        shutil.copy(path, outside / "bashrc")
    before = snapshot(outside)
    link(path, outside / "bashrc", hard=hard)
    go_on(place, code=0)
    said_by(place, "score", "runs/tiny", code=0)
    assert snapshot(outside) == before
    assert not path.is_symlink()


@pytest.mark.parametrize("name", ["log.jsonl", "lock", "tests/test/cost.json", "features.json"])
def test_a_link_to_nothing_makes_nothing(place, outside, name):
    path = place / "runs" / "tiny" / name
    before = snapshot(outside)
    link(path, outside / "new")
    if name != "features.json":
        (place / "runs" / "tiny" / RECORD).unlink()
    go_on(place, code=0)
    assert snapshot(outside) == before


@pytest.mark.parametrize(
    "name", ["checkpoints", "tests", "tests/test", "tests/test/segments", "tensorboard", "analysis"]
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_link_to_a_folder_is_not_followed(place, outside, name, overwrite):
    path = place / "runs" / "tiny" / name
    if path.is_dir():
        shutil.copytree(path, outside, dirs_exist_ok=True)
    before = snapshot(outside)
    link(path, outside)
    said_by(place, "score", "runs/tiny", "--metrics", "ter", code=0)
    assert snapshot(outside) == before
    if overwrite:
        said_by(place, "train", "tiny.yaml", "--overwrite", code=0)
        assert not path.is_symlink()
    else:
        assert f"tiny/{name}: is a link, and nothing is written through links inside" in go_on(
            place, code=1
        )
    assert snapshot(outside) == before


def test_the_outer_folders_may_be_links(place, tmp_path_factory):
    disk = tmp_path_factory.mktemp("disk")
    for name in ("runs/tiny", "runs", "data"):
        moved = disk / name.replace("/", "-")
        shutil.move(place / name, moved)
        (place / name).symlink_to(moved)
    go_on(place, code=0)
    assert (place / "runs" / "tiny").is_symlink()
    assert (disk / "runs-tiny" / "checkpoints" / "step-00000010").is_dir()


@pytest.mark.parametrize("name", ["corpus.json", "kept.arrow", "lock", RECORD, "train-00000.arrow"])
def test_links_in_an_unfinished_prepared_corpus_are_replaced(place, outside, name):
    [folder] = (place / "data" / "prepared").iterdir()
    shutil.rmtree(folder)
    folder.mkdir()
    before = snapshot(outside)
    link(folder / name, outside / "new")
    shutil.rmtree(place / "runs")
    said_by(place, "train", "tiny.yaml", code=0)
    assert snapshot(outside) == before
