"""Recipes by name on the command line: lists, dry runs, and a wheel that has them."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from places import ROOT
from tiny import (
    TRAINING,
    environment,
    fail,
    lines_of,
    snapshot,
    succeed,
    synmt,
    write_corpus,
    write_recipe,
)

from synmt.recipe.catalogue import shipped_recipes
from synmt.training.pipeline import plan_training

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("offline")]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Make an empty folder with an empty cache, and go there."""
    for line in ("SYNMT_CACHE cache", "SYNMT_DATA texts", "STANZA_RESOURCES_DIR models"):
        name, folder = line.split()
        monkeypatch.setenv(name, str(tmp_path / folder))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def table(done):
    """Read the steps of a dry run: state and size of each."""
    rows = [
        re.split(r"  +", line.strip(), maxsplit=2)
        for line in lines_of(done)[1:]
        if re.search(r"  \w", line)
    ]
    return {row[0]: tuple(row[1:]) for row in rows}


def states(done):
    return {step.partition(":")[0]: row[0] for step, row in table(done).items()}


def run(*arguments, cwd=None, **variables):
    """Run Python with these arguments; gives standard output."""
    command, own = [sys.executable, *arguments], environment(**variables)
    return subprocess.run(command, cwd=cwd, env=own, stdout=subprocess.PIPE, check=True).stdout


# lists


def test_the_list_shows_the_recipes_with_all_words(place):
    shown = lines_of(succeed("train", "--list", "NC11", "pascal", "heads3"))
    names = ["ablations/nc11-deen-pascal-heads3", "ablations/nc11-pascal-heads3"]
    assert [row.split()[0] for row in shown] == ["recipe", *names, "reported", "text:"]
    assert not snapshot(place)


# dry runs


@pytest.fixture
def recipe(place):
    """Write a small recipe with trees by the compact parser."""
    write_corpus(place / "text")
    parser = {"workers": 1, "device": "cpu"}
    return write_recipe(
        place / "small.yaml", place / "text", parser=parser, training={**TRAINING, "max_steps": 2}
    )


def test_a_dry_run_says_at_every_moment_what_is_there_and_writes_nothing(recipe, place):
    def planned(*arguments):
        before = snapshot(place)
        found = states(succeed("train", recipe, *arguments, "--dry-run"))
        assert snapshot(place) == before
        return found

    tested = "translate the test sets of runs/small"
    train = {"train runs/small": "to do", tested: "to do"}
    steps = ["prepare", "parse the source", "add trees to the source", *train]
    assert planned() == {"find the text": "done", **dict.fromkeys(steps, "to do")}
    assert list(planned())[1:] == steps
    succeed("prepare", recipe)
    prepared = dict.fromkeys(["find the text", "prepare", "add trees to the source"], "done")
    assert planned() == prepared | train
    # another vocabulary needs another prepared corpus, but the same trees
    other = planned("vocabulary.size=100")
    assert [other[step] for step in steps[:2]] == ["to do", "done"]
    succeed("train", recipe)
    assert planned() == dict.fromkeys(train, "done")
    (place / "here/runs/small/tests/test/hypothesis.txt").unlink()
    assert planned() == {"find the text": "done", "train runs/small": "done", tested: "to do"}


def test_a_dry_run_counts_lines_and_the_steps_that_are_left(recipe, place):
    def planned(steps):
        return table(succeed("train", recipe, f"training.max_steps={steps}", "--dry-run"))

    assert planned(20)["parse the source"] == ("to do", "32 lines")
    assert planned(20)["translate the test sets of runs/small"] == ("to do", "test")
    assert planned(20)["train runs/small"] == ("to do", "0 of 20 steps are done")
    succeed("train", recipe, "training.max_steps=8")
    assert planned(20)["train runs/small"] == ("to do", "8 of 20 steps are done")


@pytest.mark.parametrize(
    "line",
    """
    parser.control=none | prepare; parse the source; add trees to the source
    parser.control=gold | prepare; add trees to the source
    PLAIN --trees | prepare; parse the source; add trees to the source
    PLAIN | prepare
    PLAIN text.tokenizer=char | tokenize the text; prepare
    PLAIN tasks.parsing=dependencies | parse the source; write sentences with tasks; prepare
    """.replace("PLAIN", "syntax.variants=[]")
    .strip()
    .splitlines(),
)
def test_a_dry_run_of_prepare_has_the_steps_of_its_recipe(recipe, line):
    given, _, steps = line.partition(" | ")
    before = states(succeed("prepare", recipe, *given.split(), "--dry-run"))
    assert before == {"find the text": "done", **dict.fromkeys(steps.split("; "), "to do")}
    succeed("prepare", recipe, *given.split())
    after = states(succeed("prepare", recipe, *given.split(), "--dry-run"))
    assert set(after.values()) == {"done"}


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        (
            "nc11-pascal",
            "cannot be downloaded (SYNMT_OFFLINE is set); training-parallel-nc-v11.tgz; "
            "wmt15/test.tgz; Stanza models for 'en' not found",
        ),
        ("wat-enja-base", "ASPEC"),
    ],
)
def test_without_a_network_a_dry_run_names_all_that_is_missing(place, name, messages):
    planned = synmt("train", name, "--dry-run")
    assert planned.returncode == 1
    first, *others = messages.split("; ")
    assert first in fail(1, "train", name)
    for part in (first, *others):
        assert part in planned.stderr.decode()
    assert states(planned)["build the text"] in ("error", "to do")
    assert not Path("runs").exists()


def test_every_shipped_recipe_has_a_plan_without_text_and_without_a_network(place):
    for name in shipped_recipes():
        steps = {step.what.split(" runs/")[0]: step for step in plan_training(name)}
        assert "build the text" in " ".join(steps)
        assert steps["train"].state == "to do"
        assert re.match(r"0 of [\d,]+ steps", steps["train"].size), name
    assert not snapshot(place)


# the wheel


def test_pages_of_the_documentation_are_listed_and_shown():
    listed = succeed("--docs").stdout.decode().splitlines()
    titles = dict(line.split(maxsplit=1) for line in listed)
    assert titles["scale"] == "Beyond one machine"
    assert len(titles) == len(list((ROOT / "docs").rglob("*.md")))
    # and what messages and help texts name
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "synmt").rglob("*.py"))
    named = set(re.findall(r"--docs ([\w/-]+)", source))
    assert named >= {"scale", "corpora"}
    for name in named | {"docs/scale.md", "systems/pascal", "pascal"}:
        assert succeed("--docs", name).stdout.startswith(b"# "), name


def test_a_wheel_brings_recipes_and_documentation_along(tmp_path):
    pytest.importorskip("setuptools")
    source, installed = tmp_path / "source", tmp_path / "installed"
    ignored = shutil.ignore_patterns("__pycache__", "*.pt")
    for name in ("synmt", "recipes", "docs"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ["pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"]:
        shutil.copy(ROOT / name, source)
    # what pip asks of it
    run("-c", "from setuptools.build_meta import build_wheel; build_wheel('out')", cwd=source)
    [wheel] = (source / "out").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(installed)
    assert not (installed / "recipes").exists()
    docs = [len([*(folder / "docs").rglob("*.md")]) for folder in (installed / "synmt", ROOT)]
    assert docs[0] == docs[1]
    script = """
import json, synmt.corpora.known
from synmt.recipe import catalogue, load
found = {name: path.stem for name, path in catalogue.shipped_recipes().items()}
# they begin with the same few bases
print(json.dumps(found | {name: load.load_recipe(name).name for name in sorted(found)[::5]}))
"""
    folders = {"PYTHONPATH": str(installed), "SYNMT_CACHE": str(tmp_path / "cache")}
    found = json.loads(run("-c", script, cwd=tmp_path, **folders))
    assert found == {name: path.stem for name, path in shipped_recipes().items()}
