"""Modules of users' own: they run only if allowed, a run keeps a copy, what is missing is named."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from refusing import assert_refused
from tiny import environment, fail, succeed, write_corpus, write_lines, write_recipe

from synmt.errors import UsageError
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
    here = tmp_path / "here"
    write_lines(here / "mylab" / "pascal.py", [MODULE])
    write_lines(here / "mylab" / "parts" / "helper.py", ["WORD = 'a'"])
    write_lines(here / "beside.py", ["SIGN = '!'"])
    monkeypatch.chdir(here)
    return here


def word_of_variant():
    return variant_class("mylab.pascal").word


def test_a_module_is_imported_only_if_it_is_allowed_and_as_long_as_it_stays_the_same(lab):
    message = r"mylab\.pascal is not part of synmt: mylab/pascal in /.*--allow-code"
    for _ in range(2):
        assert_refused(message, word_of_variant)
        assert not Path("has-run").exists()
    with allowing_code():
        assert word_of_variant() == "a!"
    # the sources of what it imports count, and compiled files in the folder do not
    shutil.copy("mylab/pascal.py", "mylab/pascal.so")
    assert word_of_variant() == "a!"
    for changed in map(Path, ("mylab/parts/helper.py", "beside.py", "mylab/__init__.py")):
        before = changed.read_bytes() if changed.exists() else None
        changed.write_text("WORD = SIGN = '?'", encoding="utf-8")
        assert_refused("--allow-code", word_of_variant)
        changed.unlink() if before is None else changed.write_bytes(before)
    write_lines(Path("beside.py"), ["SIGN = '?'"])
    with allowing_code():
        assert word_of_variant() == "a?"


NAMES = "idlelib.idle this.variant ../mylab.pascal mylab..pascal /mylab/pascal"


@pytest.mark.parametrize("name", NAMES.split())
def test_no_name_imports_what_is_not_allowed(lab, name):
    before = set(sys.modules)
    assert_refused(r"--allow-code|there is no variant", variant_class, name)
    assert {module.partition(".")[0] for module in set(sys.modules) - before} <= {"synmt"}
    assert not Path("has-run").exists()


ERRORS = r"""
import not_installed | cannot be imported \(ModuleNotFoundError: No module named 'not_installed'\)
import mylab.gone | cannot be imported \(ModuleNotFoundError: No module named 'mylab.gone'\)
def ( | cannot be imported \(SyntaxError:
1 / 0 | cannot be imported \(ZeroDivisionError:
| there is no variant 'mylab\.pascal'\. Variants: .*or in the working folder
"""


@pytest.mark.parametrize("case", ERRORS.strip().splitlines())
def test_a_missing_module_is_told_from_one_that_cannot_be_imported(lab, case):
    source, said = case.split("| ")
    path = write_lines(lab / "mylab" / "pascal.py", [source])
    if not source:
        path.unlink()
    with allowing_code(), pytest.raises(UsageError, match=said):
        word_of_variant()


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
        assert "0: mylab.pascal is not part of synmt" in fail(2, *command, recipe)
    assert not Path("has-run").exists()
    succeed("train", recipe, "--allow-code")
    test, run = text / "test.en", ["--run", "runs/own"]
    translate = ["translate", test, "--parses", f"{test}.conllu", *run]
    expected = succeed(*translate).stdout

    # the module changes
    write_lines(lab / "beside.py", ["SIGN = '?'"])
    assert succeed(*translate).stdout == expected
    message = "the code of mylab has changed since this run was started"
    assert message in fail(2, "train", recipe, "--allow-code")

    # another machine
    there = tmp_path / "there"
    shutil.copytree("runs", there / "runs")
    monkeypatch.chdir(there)
    monkeypatch.setenv("SYNMT_CACHE", str(there / "cache"))
    scoring = ["score", "--model", "runs/own", "--source", test, "--target", text / "test.de"]
    for command in (translate, ["analyze", "--attention", *run], scoring):
        assert "mylab/pascal in runs/own/code would be imported" in fail(2, *command)
    succeed("score", "runs/own")
    assert not Path("has-run").exists()
    assert succeed(*translate, "--allow-code").stdout == expected
    assert succeed(*translate).stdout == expected

    # a damaged copy, and a run of an older synmt
    with open("runs/own/code/beside.py", "a") as out:
        out.write("#")
    message = "runs/own/code/beside.py: broken: its content has changed"
    assert message in fail(1, *translate)
    shutil.rmtree("runs/own/code")
    message = "runs/own/recipe.yaml: syntax.variants.0: there is no variant 'mylab.pascal'"
    assert message in fail(2, *translate, "--allow-code")


# the installed command, and one of its worker processes
COMMAND = """
from multiprocessing import get_context
from synmt import __main__ as command

if __name__ == '__main__':
    try:
        command.main()
    except SystemExit:
        pass
    worker = get_context('spawn').Process(target=print)
    worker.start()
    worker.join()
"""


@pytest.mark.journey
def test_no_file_of_the_working_folder_replaces_a_module_of_python(tmp_path):
    folder, script = tmp_path / "received", write_lines(tmp_path / "command.py", [COMMAND])
    for name in ("yaml", "rich", "pickle") if sys.version_info >= (3, 11) else ("yaml", "rich"):
        write_lines(folder / f"{name}.py", ["open('has-run', 'w')"])
    command = [sys.executable, script, "train", "--list", "multi30k"]
    subprocess.run(command, cwd=folder, env=environment(), check=True)
    assert not (folder / "has-run").exists()
