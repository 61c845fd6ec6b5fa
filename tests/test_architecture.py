"""Imports run one way; the plain model knows no paper; syntax needs no torch; only the command line prints."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "synmt"

LAYERS = [
    {"__init__", "__main__", "errors"},
    {"files", "hashing", "yaml", "recipe", "recipe_data", "recipe_model", "recipe_file"},
    {"syntax"},
    {"controlled", "known_corpora", "fetch", "corpora", "tables", "corpus", "batch"},
    {
        "preparing",
        "filtering",
        "encoding",
        "annotating",
        "annotation_shard",
        "tasks",
        "corpus_table",
        "model",
        "loss",
        "device",
        "parallel",
        "schedule",
    },
    {"checkpoint"},
    {"decode", "bootstrap", "metrics", "sacre", "ribes", "neural", "segments", "significance", "contrast"},
    {
        "stream",
        "records",
        "training",
        "log",
        "outputs",
        "systems",
        "same_system",
        "seeds",
        "standings",
        "analysis",
        "plots",
    },
    {"needs", "origins"},
    {"experiment"},
    {"cli"},
]


def modules():
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def imported(path):
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "synmt":
                yield from (f"synmt.{alias.name}" for alias in node.names if not alias.name.startswith("_"))


def part(name):
    return name.removesuffix(".py")


def layer_of(name):
    for number, layer in enumerate(LAYERS):
        if name in layer:
            return number
    raise AssertionError(f"{name} has no layer: say in this test where it belongs")


@pytest.mark.parametrize("path", modules(), ids=str)
def test_a_module_imports_only_from_its_own_layer_or_below(path):
    own = layer_of(part(path.parts[0]))
    if path.name == "__main__.py":
        return
    for name in imported(path):
        if name.startswith("synmt."):
            other = name.split(".")[1]
            assert layer_of(other) <= own, f"{path} imports {name}"


@pytest.mark.parametrize("path", [p for p in modules() if p.parts[0] == "model" and len(p.parts) == 2], ids=str)
def test_the_plain_model_knows_no_variant(path):
    if path.name != "build.py":
        assert not [name for name in imported(path) if name.startswith("synmt.model.variants")]


@pytest.mark.parametrize("path", [p for p in modules() if p.parts[0] == "syntax"], ids=str)
def test_syntax_needs_no_torch_but_in_the_stanza_adapter(path):
    if not path.name.startswith(("parsers", "stanza", "workers")):
        assert not {name.split(".")[0] for name in imported(path)} & {"torch", "stanza"}


@pytest.mark.parametrize("path", [p for p in modules() if p.parts[0] != "cli"], ids=str)
def test_only_the_command_line_prints(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"typer", "rich"}
    calls = (n for n in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))) if isinstance(n, ast.Call))
    assert not [call.lineno for call in calls if getattr(call.func, "id", "") == "print"]


@pytest.mark.parametrize("path", modules(), ids=str)
def test_files_and_functions_stay_short(path):
    text = (PACKAGE / path).read_text(encoding="utf-8")
    assert text.count("\n") <= 320, "split the file"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            docstring = ast.get_docstring(node)
            body = node.end_lineno - node.lineno + 1 - (docstring.count("\n") + 1 if docstring else 0)
            assert body <= 50, f"{node.name} has {body} lines"
