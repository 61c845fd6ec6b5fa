"""Modules of users' own: they run only if allowed, a run keeps a copy, what is missing is named."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import environment, fail, succeed, write_corpus, write_recipe

from synmt.errors import SynmtError, UsageError
from synmt.files.own_code import allowing_code
from synmt.model.build import variant_class

MODULE = """
from pathlib import Path
from mylab.parts.helper import WORD
from beside import SIGN
from synmt.model.variants.pascal import Pascal as Base
Path("has-run").touch()


class Pascal(Base):
    \"\"\"The same, elsewhere.\"\"\"

    word = WORD + SIGN
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Work in a folder with a module of a user's own, which nothing allows."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNMT_ALLOW_CODE", raising=False)
    for name, text in {
        "pascal.py": MODULE,
        "parts/helper.py": "WORD = 'a'",
        "../beside.py": "SIGN = '!'",
    }.items():
        path = tmp_path / "here" / "mylab" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_a_module_is_imported_only_if_it_is_allowed_and_as_long_as_it_stays_the_same(lab):
    for _ in range(2):
        with pytest.raises(
            UsageError,
            match=r"mylab\.pascal is not part of synmt: mylab/pascal\.py in /.*--allow-code",
        ):
            variant_class("mylab.pascal")
        assert not (lab / "has-run").exists()
    with allowing_code():
        assert variant_class("mylab.pascal").word == "a!"
    assert variant_class("mylab.pascal").word == "a!"
    # the sources of what it imports count, and compiled files in the folder do not
    shutil.copy(lab / "mylab" / "pascal.py", lab / "mylab" / "pascal.so")
    assert variant_class("mylab.pascal").word == "a!"
    for changed in ("mylab/parts/helper.py", "beside.py", "mylab/__init__.py"):
        before = (lab / changed).read_bytes() if (lab / changed).exists() else None
        (lab / changed).write_text("WORD = SIGN = '?'", encoding="utf-8")
        with pytest.raises(UsageError, match="--allow-code"):
            variant_class("mylab.pascal")
        (lab / changed).unlink() if before is None else (lab / changed).write_bytes(before)
    (lab / "beside.py").write_text("SIGN = '?'", encoding="utf-8")
    with allowing_code():
        assert variant_class("mylab.pascal").word == "a?"


@pytest.mark.parametrize(
    "name", ["idlelib.idle", "this.variant", "../mylab.pascal", "mylab..pascal", "/mylab/pascal"]
)
def test_no_name_imports_what_is_not_allowed(lab, name):
    before = set(sys.modules)
    with pytest.raises(UsageError, match=r"--allow-code|there is no variant"):
        variant_class(name)
    assert {module.partition(".")[0] for module in set(sys.modules) - before} <= {"synmt"}
    assert not (lab / "has-run").exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "import not_installed",
            r"cannot be imported \(ModuleNotFoundError: No module named 'not_installed'\)",
        ),
        (
            "import mylab.gone",
            r"cannot be imported \(ModuleNotFoundError: No module named 'mylab.gone'\)",
        ),
        ("def (", r"cannot be imported \(SyntaxError: "),
        ("1 / 0", r"cannot be imported \(ZeroDivisionError: "),
        (
            None,
            r"there is no variant 'mylab\.pascal'\. Folders searched: .*/here and the packages of",
        ),
    ],
)
def test_a_missing_module_is_told_from_one_that_cannot_be_imported(lab, source, said):
    path = lab / "mylab" / "pascal.py"
    path.write_text(source, encoding="utf-8") if source else path.unlink()
    with allowing_code(), pytest.raises(UsageError, match=said):
        variant_class("mylab.pascal")


def test_a_program_that_has_imported_the_module_itself_needs_no_permission(lab, monkeypatch):
    monkeypatch.syspath_prepend(lab)
    for name in ("mylab", "mylab.parts", "mylab.parts.helper", "beside", "mylab.pascal"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("synmt.files.own_code._loaded", {})
    from mylab.pascal import Pascal

    assert variant_class("mylab.pascal") is Pascal


@pytest.mark.journey
def test_a_run_travels_with_its_code_and_runs_it_only_if_it_is_allowed(lab, tmp_path, monkeypatch):
    text = write_corpus(lab / "text")
    variants = [{"name": "mylab.pascal", "layers": [1], "heads": 2}]
    recipe = write_recipe(lab / "own.yaml", text, syntax={"variants": variants})
    for command in (["train"], ["train", "--dry-run"], ["prepare"]):
        assert "own.yaml: syntax.variants.0: mylab.pascal is not part of synmt" in fail(
            2, *command, recipe
        )
    assert not (lab / "has-run").exists()
    trained = succeed("train", recipe, "--allow-code").stderr.decode()
    assert (
        "allowed until it changes: mylab/parts/helper.py, mylab/pascal.py and beside.py\n"
        in trained
    )
    test, trees = text / "test.en", text / "test.en.conllu"
    translate = ["translate", test, "--parses", trees, "--run", "runs/own"]
    expected = succeed(*translate).stdout

    # the module changes
    (lab / "beside.py").write_text("SIGN = '?'", encoding="utf-8")
    done = succeed(*translate)
    assert done.stdout == expected
    assert b"its own copy in runs/own/code is used" in done.stderr
    assert "the code of mylab has changed since this run was started" in fail(
        2, "train", recipe, "--allow-code"
    )

    # another machine
    (tmp_path / "there").mkdir()
    shutil.copytree(lab / "runs", tmp_path / "there" / "runs")
    monkeypatch.chdir(tmp_path / "there")
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "there" / "cache"))
    for command in (translate, ["analyze", "--attention", "--run", "runs/own"]):
        assert "mylab/pascal.py in runs/own/code would be imported" in fail(2, *command)
    scoring = "score", "--model", "runs/own", "--source", test, "--target", text / "test.de"
    assert "mylab/pascal.py in runs/own/code would be imported" in fail(2, *scoring)
    assert not Path("has-run").exists()
    succeed("score", "runs/own")
    assert not Path("has-run").exists()
    assert succeed(*translate, "--allow-code").stdout == expected
    assert succeed(*translate).stdout == expected

    # a damaged copy, and a run of an older synmt
    (hashes,) = json.loads(Path("runs/own/code/hashes.json").read_text()).values()
    assert len(hashes) == 64
    with open("runs/own/code/beside.py", "a") as out:
        out.write("#")
    assert "runs/own/code/mylab: the run folder is broken: the code has changed" in fail(
        1, *translate
    )
    shutil.rmtree("runs/own/code")
    said = fail(2, *translate, "--allow-code")
    assert (
        "runs/own/recipe.yaml: syntax.variants.0: there is no variant 'mylab.pascal'. Folders "
        "searched: " in said
    )


def test_an_unreadable_record_of_hashes_is_an_error(lab):
    shutil.copytree("mylab", "code/mylab")
    Path("code/hashes.json").write_text("[1]")
    with pytest.raises(SynmtError, match=r"hashes\.json: broken"):
        variant_class("mylab.pascal", code=Path("code"))


@pytest.mark.journey
def test_no_file_of_the_working_folder_replaces_a_module_of_python(tmp_path):
    folder, script = tmp_path / "received", tmp_path / "command.py"
    folder.mkdir()
    for name in ("yaml", "rich", "pickle") if sys.version_info >= (3, 11) else ("yaml", "rich"):
        (folder / f"{name}.py").write_text("open('has-run', 'w')")
    # the installed command, and one of its worker processes
    script.write_text(
        "from multiprocessing import get_context\nfrom synmt import __main__ as command\n\n"
        "if __name__ == '__main__':\n    try:\n        command.main()\n    except SystemExit:\n    "
        "    pass\n"
        "    worker = get_context('spawn').Process(target=print)\n    worker.start()\n    "
        "worker.join()\n"
    )
    for program in ([script], ["-m", "synmt"]):
        command = [sys.executable, *program, "train", "--list", "multi30k"]
        subprocess.run(command, cwd=folder, env=environment(), check=True)
        # Python itself imports pickle before synmt begins
        (folder / "pickle.py").unlink(missing_ok=True)
    assert not (folder / "has-run").exists()
