"""The rooms of the house: which package may import which, how large things are, who prints, who
knows Stanza."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from each import of_each
from places import ROOT

from synmt.cli import COMMANDS
from synmt.parsing.stanza_internals import SUPPORTED

PACKAGE = ROOT / "synmt"

ORDER = (
    ("errors",),
    ("options",),
    ("arrays", "files", "machine", "recipe", "speed"),
    ("reporting",),
    ("parallel", "syntax"),
    ("controlled",),
    ("corpora",),
    ("data", "parsing"),
    ("tokenization",),
    ("model",),
    ("fast", "exchange"),
    ("run_folder",),
    ("decode",),
    ("evaluation",),
    ("training",),
    ("cluster",),
    ("analysis", "serve"),
    ("cli",),
)
"""Each package imports from those of earlier rows, and from itself."""

ROW_OF = {name: row for row, names in enumerate(ORDER) for name in names}
LONGEST_FILE, LONGEST_FUNCTION, MOST_PARAMETERS = 400, 60, 8

FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
MODULES = {
    ".".join(("synmt", *path.with_suffix("").parts)).removesuffix(".__init__"): path
    for path in FILES
}
INSIDE = [path for path in FILES if path.parts[0] not in ("__init__.py", "__main__.py")]


@cache
def tree_of(path):
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


@cache
def nodes_of(path):
    return list(ast.walk(tree_of(path)))


@cache
def imports_of(path):
    """List every module that a file imports, those for type checkers and inside functions too."""
    return list(_imports_of(path))


def _imports_of(path):
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else str(node.module)


def functions_of(path):
    return [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef)]


@of_each(INSIDE)
def test_imports_run_one_way(path):
    own = Path(path.parts[0]).stem
    for name in imports_of(path):
        other = name.split(".")[1] if name.startswith("synmt.") else own
        if other not in (own, "__version__"):
            assert ROW_OF[other] < ROW_OF[own], f"{path} imports {name}"


def test_no_circle_of_files():
    graph = {
        name: {other for other in imports_of(path) if other in MODULES}
        for name, path in MODULES.items()
    }
    for name in graph:
        # a package's __init__ is loaded before its modules, and needs none of them
        graph[name] -= {name, "synmt"}
    list(TopologicalSorter(graph).static_order())


def folder_of(path):
    return path.parent.as_posix() if len(path.parts) > 1 else path.stem


def test_no_circle_of_folders():
    graph = defaultdict(set)
    for path in INSIDE:
        others = (MODULES[name] for name in imports_of(path) if name in MODULES and name != "synmt")
        graph[folder_of(path)] |= set(map(folder_of, others)) - {folder_of(path)}
    # the catalogue is read by name, in model/build.py
    graph["model/variants"] = set()
    list(TopologicalSorter(graph).static_order())


@of_each([path for path in INSIDE if path.parts[0] != "fast"])
def test_the_wing_is_imported_by_its_door_only_and_alone_has_private_operators(path):
    assert not [name for name in imports_of(path) if name.startswith("synmt.fast")]
    dotted = (ast.unparse(node) for node in nodes_of(path) if isinstance(node, ast.Attribute))
    assert not [name for name in dotted if re.match(r"torch\.(ops|_C|\w+\._)", name)]


@of_each(INSIDE)
def test_only_parsing_knows_stanza_and_syntax_needs_no_torch(path):
    roots = {name.split(".")[0] for name in imports_of(path)}
    assert (
        path.parts[0] == "parsing" or path.parts[:2] == ("fast", "parser") or "stanza" not in roots
    )
    assert path.parts[0] not in ("syntax", "recipe") or "torch" not in roots


def test_only_the_supported_stanza_can_be_installed():
    major, minor = map(int, SUPPORTED.split("."))
    pins = re.findall(r'"(stanza[^"]*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert pins == [f"stanza>={SUPPORTED},<{major}.{minor + 1}"]


@of_each(
    [
        p
        for p in INSIDE
        if p.parts[0] == "model" and p.parent.name != "variants" and p.name != "build.py"
    ]
)
def test_the_plain_model_knows_no_variant(path):
    assert not [name for name in imports_of(path) if name.startswith("synmt.model.variants")]


@of_each([path for path in INSIDE if path.parts[0] != "cli"])
def test_only_the_command_line_prints(path):
    drawing = {"rich"} if path == Path("reporting/text.py") else set()
    assert not {name.split(".")[0] for name in imports_of(path)} & {"typer", "rich"} - drawing
    calls = (node for node in nodes_of(path) if isinstance(node, ast.Call))
    assert not [call.lineno for call in calls if getattr(call.func, "id", "") == "print"]


@of_each(FILES)
def test_files_and_functions_stay_short(path):
    assert (PACKAGE / path).read_text(encoding="utf-8").count("\n") <= LONGEST_FILE, (
        "split the file"
    )
    for function in functions_of(path):
        docstring = ast.get_docstring(function)
        lines = (
            function.end_lineno
            - function.lineno
            + 1
            - (docstring.count("\n") + 1 if docstring else 0)
        )
        assert lines <= LONGEST_FUNCTION, f"{function.name} has {lines} lines"


@of_each(FILES)
def test_functions_take_few_parameters_and_name_them(path):
    for function in functions_of(path):
        given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        given = [argument for argument in given if argument.arg not in ("self", "cls")]
        assert len(given) <= MOST_PARAMETERS, f"{function.name} has {len(given)} parameters"
    called = (node.func for node in nodes_of(path) if isinstance(node, ast.Call))
    assert not [name.lineno for name in called if getattr(name, "id", "") == "locals"]


@of_each(FILES)
def test_a_private_name_stays_in_its_file(path):
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("synmt"):
            private = [
                alias.name
                for alias in node.names
                if alias.name.startswith("_") and alias.name != "__version__"
            ]
            assert not private, f"{path} imports {private}"


WINGS = ("cluster", "controlled", "fast")
MOST_NODES = {"the core": 162_659, "the wings": 21_988, "tests": 189_699, "benchmarks": 12_988}
"""Syntax nodes that there may be; what is new has to make something superfluous."""


def part_of(path):
    """Name the part of the project that a file belongs to."""
    top, *inside = path.relative_to(ROOT).parts
    return top if top != "synmt" else "the wings" if inside[0] in WINGS else "the core"


def size_of(path):
    """Count the nodes of a file, without those that the grammar needs only and without
    docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = [
        node
        for node in nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return sum(not isinstance(node, ast.expr_context) for node in nodes) - 2 * len(docstrings)


def test_there_is_no_more_to_understand_than_before():
    sizes = Counter[str]()
    for folder in ("synmt", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            sizes[part_of(path)] += size_of(path)
    assert sizes.keys() == MOST_NODES.keys()
    assert not {part: size for part, size in sizes.items() if size > MOST_NODES[part]}, (
        "make something superfluous"
    )


@pytest.mark.journey
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_nothing_heavy(command):
    heavy = {"torch", "stanza", "numpy", "scipy", "sacrebleu", "pyarrow", "yaml"}
    # typer itself loads pydantic, for a command's numeric options; other commands are not loaded
    heavy |= set() if command else {"pydantic", *(f"synmt.cli.{name}" for name in COMMANDS)}
    script = (
        "import sys\nfrom synmt.cli import main\n"
        f"sys.argv = ['synmt', *{command.split()!r}, '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write(' '.join({heavy!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert ("Usage" in done.stdout, done.stderr) == (True, "")


@pytest.mark.journey
def test_workers_that_prepare_a_corpus_load_no_torch():
    # each of them would need a second and 110 MB more
    code = "import sys, synmt.data.annotate, synmt.data.prepare; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
