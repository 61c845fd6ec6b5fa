"""Count how many wrong lines the unit tests notice.

Lines of the core that unit tests run are changed one at a time in a copy of the project: a sum to a
difference, a bound by one, `and` to `or`, a constant. A change is noticed if a test fails among
those that run the line, or if they do not end.

    python benchmarks/mutations.py --lines 60 --seed 1

Needs `pip install coverage`. It takes the time of the unit tests twice, and some seconds a line.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measuring import arguments

NEEDED = ("pyproject.toml", "synmt", "tests", "benchmarks", "recipes", "docs", "results")
CORE = ("model", "syntax", "decode", "training", "data", "evaluation")
PAIRS = "Add Sub, Mult Div, Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, FloorDiv Mult"
SWAPS: dict[type, type] = {
    getattr(ast, one): getattr(ast, other)
    for pair in reversed(PAIRS.split(", "))
    for one, other in (pair.split(), reversed(pair.split()))
}
MOST_TESTS = 150
SECONDS = 300
WATCH = """
import coverage, pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    coverage.Coverage.current().switch_context(item.nodeid)
    return (yield)
"""
"""A plugin of pytest with which coverage knows which test runs a line."""


@dataclass(frozen=True)
class Mutation:
    """A statement's line in a file of the project, and the text that replaces an expression."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def apply(self, copy: Path) -> str:
        """Change the file in a copy of the project; return how it was."""
        whole = (copy / self.path).read_text(encoding="utf-8")
        changed = whole.encode()[: self.start] + self.text.encode() + whole.encode()[self.end :]
        (copy / self.path).write_text(changed.decode(), encoding="utf-8")
        return whole


def changed(node: ast.expr) -> ast.expr | None:
    """Return a copy of an expression with one thing wrong; None where it has nothing to change."""
    match node:
        case ast.BinOp() if type(node.op) in SWAPS:
            return ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
        case ast.BoolOp():
            return ast.BoolOp(SWAPS[type(node.op)](), node.values)
        case ast.Compare() if len(node.ops) == 1:
            return ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators)
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Constant(value=bool()):
            return ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            return ast.Constant(node.value + 1)
    return None


def mutations_of(root: Path, path: Path) -> Iterator[Mutation]:
    """List the ways to change one file; annotations and default values of types stay."""
    text = (root / path).read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    # places inside of an f-string are known from Python 3.12 on only
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    hidden = {id(node) for string in strings for node in ast.walk(string)}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in (node for statement in function.body for node in ast.walk(statement)):
            if id(node) in hidden or not isinstance(node, ast.expr):
                continue
            if (new := changed(node)) is not None:
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
                yield Mutation(path, node.lineno, start, end, f"({ast.unparse(new)})")


def run_tests(copy: Path, *arguments: str, watched: bool = False) -> int:
    """Run pytest in the copy; return its status, 124 if it takes too long."""
    before = ["-m", "coverage", "run", "--source", "synmt"] if watched else []
    command = [sys.executable, *before, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    paths = [str(copy), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SYNMT_THREADS": "1"}
    try:
        done = subprocess.run(
            [*command, *arguments],
            cwd=copy,
            env=variables,
            timeout=None if watched else SECONDS,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return 124
    return done.returncode


def tests_by_line(copy: Path) -> dict[tuple[Path, int], list[str]]:
    """Return for each line which unit tests run it."""
    import coverage

    (copy / "watching.py").write_text(WATCH, encoding="utf-8")
    run_tests(copy, "-p", "watching", "-m", "unit", watched=True)
    data = coverage.CoverageData(str(copy / ".coverage"))
    data.read()
    return {
        (Path(file).relative_to(copy), line): [test for test in tests if test]
        for file in data.measured_files()
        for line, tests in data.contexts_by_lineno(file).items()
    }


def main() -> None:
    """Change lines one at a time and print which changes no test notices."""
    options = arguments(__doc__, lines=60, seed=1, project=Path(__file__).parents[1])
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve() / "project"
        copy.mkdir()
        for name in NEEDED:
            source = options.project / name
            if source.is_dir():
                shutil.copytree(source, copy / name)
            else:
                shutil.copy(source, copy / name)
        tests = tests_by_line(copy)
        possible: dict[tuple[Path, int], list[Mutation]] = {}
        for package in CORE:
            for path in sorted((copy / "synmt" / package).rglob("*.py")):
                for mutation in mutations_of(copy, path.relative_to(copy)):
                    line = (mutation.path, mutation.line)
                    if tests.get(line):
                        possible.setdefault(line, []).append(mutation)
        random.seed(options.seed)
        unnoticed = 0
        for number, line in enumerate(random.sample(list(possible), options.lines), 1):
            mutation = random.choice(possible[line])
            whole = mutation.apply(copy)
            few = random.sample(tests[line], min(len(tests[line]), MOST_TESTS))
            status = run_tests(copy, *few)
            (copy / mutation.path).write_text(whole, encoding="utf-8")
            old = whole.encode()[mutation.start : mutation.end].decode()
            print(
                f"{number:3} {'NOT NOTICED' if status == 0 else 'noticed':11} "
                f"{mutation.path}:{mutation.line} {' '.join(old.split())} → {mutation.text} "
                f"({len(few)} tests)",
                flush=True,
            )
            unnoticed += status == 0
        print(f"{options.lines - unnoticed} of {options.lines} changes are noticed")


if __name__ == "__main__":
    main()
