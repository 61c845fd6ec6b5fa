"""Recipes by name on the command line: lists, completion, dry runs, and a wheel that has them."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from corpus_server import serving
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

from synmt.parsing import bulk
from synmt.parsing.parser import StanzaParser
from synmt.recipe.catalogue import shipped_recipes
from synmt.recipe.data import ParserRecipe
from synmt.recipe.load import load_recipe
from synmt.run_folder import Run
from synmt.training import run_stages
from synmt.training.parse_text import TextSize, parsing_step
from synmt.training.pipeline import plan_training
from synmt.training.run_stages import count_weights

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("offline")]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Make an empty folder with an empty cache, and go there."""
    for name, folder in (
        ("SYNMT_CACHE", "cache"),
        ("SYNMT_DATA", "texts"),
        ("STANZA_RESOURCES_DIR", "models"),
    ):
        monkeypatch.setenv(name, str(tmp_path / folder))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def table(done):
    """Read the steps of a dry run: state and amount of each."""
    rows = [
        re.split(r"  +", line.strip(), maxsplit=2)
        for line in lines_of(done)[1:]
        if re.search(r"  \w", line)
    ]
    return {row[0]: tuple(row[1:]) for row in rows}


def states(done):
    return {step.split(":")[0]: row[0] for step, row in table(done).items()}


# lists


def test_the_list_shows_the_recipes_with_all_words(place):
    done = succeed("train", "--list", "NC11", "pascal", "heads3")
    header, *rows, reported, text = lines_of(done)
    assert "−: difference from the recipe it changes" in reported
    assert text.startswith("text: local, if")
    assert header.split("  ")[0] == "recipe"
    assert [row.split()[0] for row in rows] == [
        f"ablations/nc11-{pair}pascal-heads3" for pair in ("deen-", "")
    ]
    assert not snapshot(place)


def test_a_list_without_any_recipe_is_an_error(place):
    assert "no shipped recipe contains nothing and like-this" in fail(
        1, "train", "--list", "nothing", "like-this"
    )


def test_the_list_loads_nothing_that_takes_long():
    script = (
        "import sys\nfrom synmt.training.recipe_list import list_recipes\nassert "
        "len(list_recipes()) > 200\n"
    )
    script += "print(*{'torch', 'stanza', 'mtdata'} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


def test_train_without_a_recipe_says_where_the_names_are(place):
    assert "RECIPE is missing. Give a file, or a name that `synmt train --list` shows." in fail(
        2, "train"
    )


# completion


def completed(words, monkeypatch):
    """Ask for completions as bash does."""
    asked = {
        "_SYNMT_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    with monkeypatch.context() as patch:
        for name, value in asked.items():
            patch.setenv(name, value)
        return synmt().stdout.decode().split()


def test_a_shell_completes_names_and_files(place, monkeypatch):
    for name in ("nc11-own.yaml", "own.yml", "own.txt", "a[b].yaml"):
        (place / "here" / name).touch()
    assert completed("synmt train nc11-pas", monkeypatch) == ["nc11-pascal", *PASCALS]
    assert completed("synmt prepare nc11-", monkeypatch)[:2] == ["nc11-own.yaml", "nc11-base"]
    assert completed("synmt train ablations/nc11-pascal-heads3", monkeypatch) == [
        "ablations/nc11-pascal-heads3"
    ]
    assert completed("synmt train own", monkeypatch) == ["own.yml"]
    assert completed("synmt train a[", monkeypatch) == ["a[b].yaml"]
    assert set(completed("synmt train ", monkeypatch)) > shipped_recipes().keys()


PASCALS = [
    name.rpartition("/")[2]
    for name in shipped_recipes()
    if name.startswith("ablations/nc11-pascal")
]
"""What follows `nc11-pascal` without the folder."""


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
    steps = ["find the text", "prepare vocabulary and subwords", "parse train.en", "parse valid.en"]

    def planned(*arguments):
        before = snapshot(place)
        found = states(succeed("train", recipe, *arguments, "--dry-run"))
        assert snapshot(place) == before
        return {step.split(" data/")[0]: state for step, state in found.items()}

    first = planned()
    assert list(first) == [
        "find the text",
        "prepare",
        *steps[2:],
        "add trees to the source",
        "train runs/small",
        "translate and score test",
    ]
    assert list(first.values()) == ["done", *["to do"] * 6]
    succeed("prepare", recipe)
    prepared = {"find the text": "done", "prepare": "done", "add trees to the source": "done"}
    assert planned() == prepared | {
        "train runs/small": "to do",
        "translate and score test": "to do",
    }
    # another vocabulary needs another prepared corpus, but the same trees
    other = planned("vocabulary.size=100")
    assert [other[step] for step in ("prepare", "parse train.en", "parse valid.en")] == [
        "to do",
        "done",
        "done",
    ]
    succeed("train", recipe)
    assert planned() == {"train runs/small": "done", "translate and score test": "done"}
    (place / "here/runs/small/tests/test/hypothesis.txt").unlink()
    assert planned() == {
        "find the text": "done",
        "train runs/small": "done",
        "translate and score test": "to do",
    }


def test_a_dry_run_counts_weights_lines_and_the_steps_that_are_left(recipe, place):
    vocabulary = {"kind": "word", "size": 2000}
    gold = write_recipe(place / "gold.yaml", place / "text", vocabulary=vocabulary)
    more = ("training.max_steps=20", "--dry-run")
    assert (
        table(succeed("train", recipe, "--dry-run"))["parse train.en"][1]
        == "32 lines, at least 1 s"
    )
    before = table(succeed("train", gold, *more))
    assert before["translate and score test"][1] == "4 lines, bleu, chrf, ter"
    most = re.fullmatch(r"up to ([\d,]+) weights, 20 steps", before["train runs/gold"][1])
    said = re.search(r"train: ([\d,]+) weights on cpu", succeed("train", gold).stderr.decode())
    after = table(succeed("train", gold, *more))["train runs/gold"][1]
    # step 8 is done
    assert after == f"{said[1]} weights, steps 9 to 20"
    last = table(succeed("train", gold, "training.max_steps=9", "--dry-run"))["train runs/gold"][1]
    assert last == f"{said[1]} weights, step 9"
    Run(place / "here/runs/gold").write_info(status="training")
    done = table(succeed("train", gold, "training.max_steps=8", "--dry-run"))["train runs/gold"][1]
    assert done == f"{said[1]} weights, no further step: step 8 is done"
    assert int(said[1].replace(",", "")) < int(most[1].replace(",", ""))


def test_before_the_vocabulary_is_there_its_size_in_the_recipe_counts():
    sizes = load_recipe("nc11-pascal", ["model.size=tiny"])
    # 16,384 pieces of 128 numbers; the paper's table of other sizes is in test_parameter_counts.py
    more, fewer = (
        count_weights(sizes.model, sizes.syntax, pieces, pieces) for pieces in (16_384, 384)
    )
    assert more - fewer == 16_000 * 128


def test_a_dry_run_of_prepare_ends_with_the_trees(recipe):
    assert list(states(succeed("prepare", recipe, "--dry-run")))[-1] == "add trees to the source"
    plain = ("syntax.variants=[]",)
    assert "parse train.en" not in states(succeed("prepare", recipe, *plain, "--dry-run"))
    assert "parse train.en" in states(succeed("prepare", recipe, *plain, "--trees", "--dry-run"))


def test_a_dry_run_of_two_tasks_knows_its_text_when_the_trees_are_there(place):
    write_corpus(place / "text")
    sections = {
        "syntax": {"variants": []},
        "tasks": {"parsing": "dependencies"},
        "filters": {"max_words": 40},
    }
    parser = {"workers": 1, "device": "cpu"}
    recipe = write_recipe(place / "tasks.yaml", place / "text", parser=parser, **sections)
    before = states(succeed("prepare", recipe, "--dry-run"))
    assert before == {
        "find the text": "done",
        "parse train.en": "to do",
        "write sentences with tasks": "to do",
        "prepare vocabulary and subwords": "to do",
    }
    succeed("prepare", recipe)
    after = states(succeed("prepare", recipe, "--dry-run"))
    assert set(after.values()) == {"done"}


def test_text_is_tokenized_before_anything_else(place):
    write_corpus(place / "text")
    sections = {"syntax": {"variants": []}, "parser": {}, "text": {"tokenizer": "char"}}
    recipe = write_recipe(place / "words.yaml", place / "text", **sections)
    before = succeed("prepare", recipe, "--dry-run")
    assert states(before) == {step: "to do" for step in CUT} | {"find the text": "done"}
    assert table(before)["tokenize the text"][1] == "32 lines"
    succeed("prepare", recipe)
    after = states(succeed("prepare", recipe, "--dry-run"))
    assert len(after) == 3
    assert set(after.values()) == {"done"}


CUT = ("find the text", "tokenize the text", "prepare vocabulary and subwords")


def test_gold_trees_are_not_parsed(place):
    write_corpus(place / "text")
    steps = states(succeed("train", write_recipe(place / "gold.yaml", place / "text"), "--dry-run"))
    assert not [step for step in steps if step.startswith("parse")]
    assert steps["add trees to the source"] == "to do"


def test_a_file_that_is_missing_ends_a_dry_run_as_it_ends_the_command(recipe, place):
    (place / "text" / "test.de").unlink()
    done = synmt("train", recipe, "--dry-run")
    assert done.returncode == 2
    assert states(done)["find the text"] == "missing"
    assert b"neither test.de nor test.de.gz is there" in done.stderr
    assert fail(2, "train", recipe).splitlines()[-1] == done.stderr.decode().splitlines()[-1]


def test_without_a_network_all_that_is_missing_is_one_message(place):
    done = synmt("train", "wmt16-ende-pascal", "--dry-run")
    assert done.returncode == 1
    assert [row[0] for step, row in table(done).items() if step.startswith("download")] == [
        "missing"
    ] * 6
    assert done.stderr.count(b"cannot be downloaded (SYNMT_OFFLINE is set)") == 1
    assert b"training-parallel-nc-v11.tgz" in done.stderr
    assert b"Stanza" in done.stderr
    assert not snapshot(place)


def test_training_and_its_dry_run_miss_the_same_without_a_network(place):
    planned = synmt("train", "nc11-pascal", "--dry-run").stderr.decode()
    said = fail(1, "train", "nc11-pascal")
    for part in (
        "training-parallel-nc-v11.tgz",
        "statmt.org/wmt15/test.tgz",
        "Stanza models for 'en' not found",
    ):
        assert part in said
        assert part in planned


def test_a_corpus_with_a_licence_is_asked_for(place):
    done = synmt("train", "wat-enja-base", "--dry-run")
    assert (done.returncode, states(done)["build the text"]) == (1, "missing")
    assert b"ASPEC" in done.stderr


def test_with_a_network_the_servers_are_asked_for_sizes(place, monkeypatch):
    monkeypatch.delenv("SYNMT_OFFLINE")
    name = "raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
    with serving({f"{name}/train.en.gz": b"x" * 2_345_678}) as server:
        monkeypatch.setenv("SYNMT_MIRROR", server.address)
        rows = table(succeed("train", "multi30k-pascal", "--dry-run"))
        assert not server.requests.total()
    assert rows[f"download https://{name}/train.en.gz"] == ("to do", "2.3 MB")
    assert rows[f"download https://{name}/val.en.gz"] == ("to do", "size unknown")
    assert rows["parse train.en"][1].startswith("29,000 lines, at least ")
    assert not snapshot(place)


def test_every_shipped_recipe_has_a_plan_without_text_and_without_a_network(place, monkeypatch):
    # building 223 models takes half a minute; the count is tested above
    monkeypatch.setattr(run_stages, "count_weights", lambda model, syntax, *pieces: sum(pieces))
    for name in shipped_recipes():
        steps = {step.what.split(" runs/")[0]: step for step in plan_training(name)}
        assert steps["train"].state == "to do"
        assert re.search(
            r"(about|up to|more than) [\d,]{5,} weights, [\d,]+ steps", steps["train"].amount
        ), name
        assert any(step.startswith("build the text") for step in steps)
        assert all((step.problem is None) == (step.state != "missing") for step in steps.values())
    assert not snapshot(place)


# estimates


def test_the_time_of_parsing_is_estimated_from_the_last_measurement(place):
    parser, settings = StanzaParser("en", device="cpu"), ParserRecipe(device="cpu", workers=2)
    text = TextSize(7200, 10, measured=True)
    before = parsing_step("parse x", text, parser, settings)
    assert "at least" in before.amount
    assert "4,500 words a second in each of 2 processes. This is the rate" in before.remark
    bulk.remember_rate(parser, 10_000, 1.0, 1)
    assert bulk.measured_rate(parser) is None
    # 10 words a second in each of the two processes
    bulk.remember_rate(parser, 300_000, 15_000.0, 2)
    after = parsing_step("parse x", text, parser, settings)
    assert after.amount == "7,200 lines, about 1.0 hours"
    assert (
        after.remark
        == "parsing: 10 words a second in each of 2 processes, as measured last on this machine"
    )
    assert "25 words a line" in parsing_step("parse x", TextSize(5), parser, settings).remark
    assert (
        parsing_step("parse x", TextSize(None), parser, settings).amount
        == "number of lines unknown"
    )


def test_parsing_a_text_measures_the_rate(recipe, monkeypatch):
    monkeypatch.setattr(bulk, "_ENOUGH", 100)
    assert bulk.measured_rate(StanzaParser("en", device="cpu")) is None
    succeed("prepare", recipe)
    assert bulk.measured_rate(StanzaParser("en", device="cpu")) > 1


# the wheel


def test_pages_of_the_documentation_are_listed_and_shown(tmp_path):
    listed = succeed("--docs").stdout.decode().splitlines()
    titles = {name: title for name, title in (line.split(maxsplit=1) for line in listed)}
    assert titles["scale"] == "Beyond one machine"
    assert len(titles) == len(list((ROOT / "docs").rglob("*.md")))
    for name in ("scale", "docs/scale.md", "systems/pascal", "pascal"):
        assert succeed("--docs", name).stdout.decode().startswith("# ")
    done = synmt("--docs", "scael")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"there is no page 'scael'. Did you mean 'scale'?" in done.stderr
    # what messages and help texts name
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "synmt").rglob("*.py"))
    assert not re.findall(r"docs/[\w/-]+\.md", source)
    named = {
        f"systems/{name}" if f"systems/{name}" in titles else name
        for name in re.findall(r"--docs ([\w/-]+)", source)
    }
    assert named >= {"scale", "corpora"}
    assert named <= titles.keys()


def test_a_wheel_brings_recipes_and_documentation_along(tmp_path):
    pytest.importorskip("setuptools")
    source, empty = tmp_path / "source", tmp_path / "empty"
    ignored = shutil.ignore_patterns("__pycache__", "*.pt")
    for name in ("synmt", "recipes", "docs"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        "out",
        ".",
    ]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = (source / "out").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    assert not (tmp_path / "installed" / "recipes").exists()
    assert len(list((tmp_path / "installed" / "synmt" / "docs").rglob("*.md"))) == len(
        list((ROOT / "docs").rglob("*.md"))
    )
    empty.mkdir()
    script = "import json, synmt.corpora.known\nfrom synmt.recipe import catalogue, load\n"
    script += (
        "print(json.dumps({name: load.load_recipe(name).name for name in "
        "catalogue.shipped_recipes()}))"
    )
    where = {"PYTHONPATH": str(tmp_path / "installed"), "SYNMT_CACHE": str(tmp_path / "cache")}
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=empty,
        env=os.environ | where,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout) == {name: path.stem for name, path in shipped_recipes().items()}
