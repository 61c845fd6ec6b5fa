"""Files of a run and of its prepared corpus that change after they were written."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import TRAINING, synmt, write_corpus, write_recipe

from synmt.files.checksums import RECORD

pytestmark = pytest.mark.journey

FILES = """\
run.json
source.words
target.words
log.jsonl
model.safetensors
average.safetensors
tests/test/source.txt
tests/test/reference.txt
tests/test/hypothesis.txt
tests/test/scores.json
tests/test/made_from.json
checkpoints/step-00000008/model.safetensors
checkpoints/step-00000008/optimizer.safetensors
checkpoints/step-00000008/state.json""".splitlines()
SHARDS = ("train-00000.arrow", "valid-00000.arrow", "kept.arrow", "vocabulary.words", "corpus.json")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train a tiny plain system; gives the folder of its recipe."""
    folder = tmp_path_factory.mktemp("integrity")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(folder / "cache"))
        patch.setenv("SYNMT_OFFLINE", "1")
        text, training = write_corpus(folder / "text"), {**TRAINING, "keep": 1}
        write_recipe(folder / "tiny.yaml", text, parser={}, syntax={}, training=training)
        said_by(folder, "train", "tiny.yaml", code=0)
        yield folder


@pytest.fixture
def place(trained, tmp_path):
    return Path(shutil.copytree(trained, tmp_path / "place", ignore=lambda *_: ["cache"]))


@pytest.fixture
def run(place):
    """Name the folder of the run."""
    return place / "runs" / "tiny"


@pytest.fixture
def unchecked(run):
    """Name its checkpoint, which has lost its checksums."""
    checkpoint = run / "checkpoints" / "step-00000008"
    (checkpoint / RECORD).unlink()
    return checkpoint


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


def without(path, key):
    """Take a key out of a file of JSON."""
    content = json.loads(path.read_text())
    del content[key]
    path.write_text(json.dumps(content))


def test_all_files_of_a_run_are_verified_when_asked(place, run):
    assert "broken" not in said_by(place, "score", "runs/tiny", "--verify", code=0)
    recorded = {
        record.parent / line[66:]
        for record in run.rglob(RECORD)
        for line in record.read_text().splitlines()
    }
    assert {run / name for name in FILES} - recorded == {run / "run.json"}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["score runs/tiny", "translate --run runs/tiny", ""])
def test_a_flipped_bit_in_a_file_of_a_run_is_found(place, run, name, command):
    flip(run / name)
    verify = command and said_by(place, *command.split(), "--verify", code=1)
    said = verify or go_on(place, code=1)
    assert f"tiny/{name}" in said
    assert "broken" in said


@pytest.mark.parametrize("name", SHARDS)
def test_a_flipped_bit_in_a_prepared_corpus_is_found_when_training_resumes(place, name):
    [path] = (place / "data" / "prepared").glob(f"*/{name}")
    flip(path)
    said = go_on(place, code=1)
    assert f"{path.parent.name}/{name}" in said
    assert "broken" in said


def test_small_weights_are_verified_always_and_an_edited_recipe_is_used(place, run):
    recipe = run / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("beam_size: 2", "beam_size: 3"))
    said_by(place, "score", "runs/tiny", code=0)
    flip(run / "model.safetensors")
    said = said_by(place, "translate", "tiny.yaml", "--run", "runs/tiny", code=1)
    assert "broken: its content has changed" in said


def test_what_has_no_checksums_is_accepted(place, run):
    for path in place.rglob(RECORD):
        path.unlink()
    without(run / "run.json", "checksum")
    said_by(place, "score", "runs/tiny", "--verify", code=0)
    go_on(place, code=0)


CHANGES = {
    "removed": lambda tensor: None,
    "reshaped": lambda tensor: tensor.reshape(1, *tensor.shape),
    "of another type": lambda tensor: tensor.double(),
    "not a number": lambda tensor: torch.full_like(tensor, torch.nan),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("key", ["", "/step", "/exp_avg", "/exp_avg_sq"])
def test_every_weight_and_every_state_of_adam_is_checked(place, unchecked, key, change):
    path = unchecked / ("optimizer.safetensors" if key else "model.safetensors")
    tensors = load_file(path)
    name = next(name for name in tensors if name.endswith(key or "output.weight"))
    changed = CHANGES[change](tensors.pop(name))
    save_file(tensors if changed is None else {**tensors, name: changed}, path)
    said = go_on(place, code=1)
    assert f"{path.name}: the run folder is broken" in said
    assert name in said


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors"])
@pytest.mark.parametrize("left", [0, 1])
def test_tensors_that_do_not_belong_there_or_are_all_gone(place, unchecked, file, left):
    path = unchecked / file
    save_file({**load_file(path), "extra": torch.zeros(1)} if left else {}, path)
    assert f"{file}: the run folder is broken" in go_on(place, code=1)


STATES = """\
step -1 "1" null removed
epoch -1 "1" null removed
batch -1 "1" null removed
best_step -1 "1" null removed
waited -1 "1" null removed
decays -1 "1" null
best_value "1" [] removed
scaler [] 1
unlogged [{"tokens":1}] {} [1]
unlogged_cost {"hours":1} {"seconds":"x"} []
"""
VALUES = [(key, value) for key, *values in map(str.split, STATES.splitlines()) for value in values]


@pytest.mark.parametrize(("key", "value"), VALUES)
def test_every_value_of_the_state_is_checked(place, unchecked, key, value):
    path = unchecked / "state.json"
    without(path, key)
    if value != "removed":
        path.write_text(json.dumps({**json.loads(path.read_text()), key: json.loads(value)}))
    said = go_on(place, code=1)
    assert all(part in said for part in ("step-00000008", "state.json", "broken", key))
