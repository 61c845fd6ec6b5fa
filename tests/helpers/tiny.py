"""A tiny corpus with gold trees, a recipe for it, and the command run in this process, where torch
is there already."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from places import ROOT

from synmt.cli import main
from synmt.controlled import corpus as controlled
from synmt.recipe.yaml_text import dump_yaml
from synmt.syntax.parse import Parse

MODEL = {
    "encoder_layers": 1,
    "decoder_layers": 1,
    "model_dim": 16,
    "feedforward_dim": 16,
    "heads": 4,
}
TRAINING = {
    "max_steps": 8,
    "batch_tokens": 120,
    "learning_rate": 0.01,
    "warmup": 4,
    "log_every": 3,
    "validate_every": 4,
    "save_every": 2,
    "average": 2,
    "use": "average",
    "device": "cpu",
}
PASCAL = {"name": "pascal", "layers": [1], "heads": 2, "ignore": 0.3}


def write_corpus(folder: Path, languages: tuple[str, str] = ("en", "de")) -> Path:
    """Write 40 pairs of the controlled corpus as train, valid and test, with gold trees of the
    source.

    The target's trees are chains: each word hangs on the one after it.
    """
    folder.mkdir(parents=True)
    for name, content in _corpus_files(*languages).items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


@cache
def _corpus_files(source: str, target: str) -> dict[str, str]:
    files, trees = {}, controlled.format_conllu
    for split, examples in controlled.generate(train=32, valid=4, test=30).items():
        examples = examples[:4] if split != "train" else examples
        files[f"{split}.{source}"] = "".join(f"{e.source}\n" for e in examples)
        files[f"{split}.{target}"] = "".join(f"{e.target}\n" for e in examples)
        numbered = list(enumerate(examples, 1))
        files[f"{split}.{source}.conllu"] = "".join(
            trees(e.parse, e.source, n) for n, e in numbered
        )
        files[f"{split}.{target}.conllu"] = "".join(
            trees(chain_of(e.target), e.target, n) for n, e in numbered
        )
    return files


def chain_of(line: str) -> Parse:
    """Hang every word between blanks on the next one."""
    spans = np.array([match.span() for match in re.finditer(r"\S+", line)])
    words = [line[start:end] for start, end in spans.tolist()]
    parents = np.minimum(np.arange(1, len(words) + 1), len(words) - 1)
    return Parse(words, spans, parents, [*["next"] * (len(words) - 1), "root"])


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Write a file of lines and the folders above it; gives its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_recipe(path: Path, folder: Path, /, **sections: object) -> Path:
    """Write the recipe of a tiny PASCAL system that reads gold trees; `sections` replace its
    own."""
    recipe: dict[str, object] = {
        "source": "en",
        "target": "de",
        "corpus": {"folder": str(folder)},
        "parser": {"control": "gold", "workers": 1, "device": "cpu"},
        "vocabulary": {"kind": "word", "size": 200},
        "model": MODEL,
        "syntax": {"variants": [PASCAL]},
        "training": TRAINING,
        "decoding": {"beam_size": 2, "max_length_ratio": 1.0, "max_length_extra": 2},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump_yaml({**recipe, **sections}), encoding="utf-8")
    return path


def synmt(
    *arguments: object, text: str | bytes = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a person does; gives its exit code, standard output and standard error."""
    given = text.encode() if isinstance(text, str) else text
    streams = [io.TextIOWrapper(io.BytesIO(part)) for part in (given, b"", b"")]
    standard = {"stdin": streams[0], "stdout": streams[1], "argv": ["synmt", *map(str, arguments)]}
    before = os.getcwd()
    os.chdir(cwd or before)
    try:
        with patch.multiple(sys, **standard), contextlib.redirect_stderr(streams[2]):
            code = 0
            try:
                main()
            except SystemExit as leaving:
                code = int(leaving.code or 0)
    finally:
        os.chdir(before)
    for stream in streams:
        stream.flush()
    output, errors = (stream.buffer.getvalue() for stream in streams[1:])  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(arguments, code, output, errors)


def analyze(*arguments: object, code: int = 0, cwd: Path | None = None) -> tuple[str, str]:
    """Run `synmt analyze`, which must end with this exit code; gives its standard output and
    standard error."""
    done = synmt("analyze", *arguments, cwd=cwd)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def succeed(*arguments: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command, which must succeed."""
    done = synmt(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done


def fail(code: int, *arguments: object, **options: Any) -> str:
    """Run the command, which must end with this exit code, a message for a person and no output;
    gives the message."""
    done = synmt(*arguments, **options)
    assert (done.returncode, done.stdout) == (code, b""), done.stderr
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()


def lines_of(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Split standard output, whose last line ends too."""
    *lines, rest = done.stdout.decode().split("\n")
    assert not rest
    return lines


def snapshot(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder, but not what is remembered of parsers in a cache."""
    files = (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.parts[-2:] != ("cache", "parsers")
    )
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def environment(**more: str) -> dict[str, str]:
    """Let a process that a test starts find the package."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}
