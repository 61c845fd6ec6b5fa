"""The examples of docs/api.md and of the README run, on a tiny corpus; what the tables of the page
name exists."""

import dataclasses
import importlib
import inspect
import re

import pytest
from shipped import ROOT
from tiny import TRAINING, write_recipe

pytestmark = pytest.mark.journey

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMPACT = {"workers": 1, "device": "cpu"}


def examples_of(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL))


def test_the_examples_of_the_page_run(place, monkeypatch, capsys, caplog):
    # the page sets a level, and pytest restores the one before
    caplog.set_level("NOTSET", logger="synmt")
    monkeypatch.chdir(place)
    monkeypatch.setattr("logging.basicConfig", lambda **options: None)
    write_recipe(place / "plain.yaml", place / "corpus", parser=COMPACT, syntax={"variants": []})
    write_recipe(place / "pascal.yaml", place / "corpus", parser=COMPACT)
    exec(examples_of(PAGE), {})
    printed = capsys.readouterr().out
    assert "runs/pascal finished 8" in printed
    assert "banana eats obj" in printed
    assert all(f"\n{metric} " in printed for metric in ("bleu", "chrf"))


def test_the_example_of_the_readme_runs(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    training = {**TRAINING, "max_steps": 2}
    write_recipe(place / "quickstart.yaml", place / "corpus", parser=COMPACT, training=training)
    exec(examples_of(README), {"__name__": "__main__"})
    assert "RunRecord" in capsys.readouterr().out


def test_the_functions_of_the_questions_exist_and_take_their_options():
    options = importlib.import_module("synmt.analysis.options")
    rows = re.findall(r"\| `(synmt\.analysis\.[\w.]+)\.(\w+)` \| `(\w+)` \|", PAGE)
    assert len(rows) == 7
    for module, name, record in rows:
        function = getattr(importlib.import_module(module), name)
        (parameter,) = inspect.signature(function).parameters.values()
        assert parameter.annotation == record
        assert function.__annotations__["return"] == "Report"
        assert dataclasses.is_dataclass(getattr(options, record))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(synmt(?:\.\w+){2,})`", PAGE))))
def test_every_dotted_name_on_the_page_exists(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return
    raise AssertionError(f"there is no {name}")
