"""Every message for a command line that needs no trained model: what is wrong, where, and what to
do."""

import re
import shlex
from pathlib import Path

import pytest
from tiny import synmt

pytestmark = pytest.mark.journey

# the exit code, the command line, and words of its message
REFUSED = """
2 | trian | No such command 'trian'. Did you mean 'train'?
2 | --nope | No such option: --nope
2 | score --nope | No such option: --nope
2 | train | RECIPE is missing. Give a file, or a name that `synmt train --list` shows
2 | train --seeds x quickstart | --seeds: 'x' is not a number. How many (3), or which (1,5,9)
1 | train --list nothing | no shipped recipe contains nothing. `synmt train --list` shows all
1 | train --keys zzz | no key of a recipe contains zzz. `synmt train --keys` shows all
2 | --docs scael | --docs: there is no page 'scael'. Did you mean 'scale'?
2 | --docs zzzz | there is no page 'zzzz'. `synmt --docs` lists all
2 | parse --log-file | --log-file. Write it before the command: `synmt --log-file FILE parse …`
2 | parse --quiet | --quiet. Write it before the command: `synmt --quiet parse …`
2 | parse --debug | --debug. Write it before the command: `synmt --debug parse …`
2 | train quickstart --max-steps 100 | without dashes: `training.max_steps=100`
2 | train quickstart --training.max_steps=100 | without dashes: `training.max_steps=100`
2 | prepare quickstart --dropout 0.1 | `vocabulary.dropout=0.1` or `model.dropout=0.1`
2 | parse -o --overwrite text | -o has no value. Write one between -o and --overwrite
2 | parse --model -o trees | --model has no value. Write one between --model and -o
2 | train recipe --seeds --runs=here | --seeds has no value. Write one between
2 | translate --run --beam-size 4 | --run has no value
2 | translate --run A B --device --threads 2 | --device has no value
2 | analyze --compare --run A B | --compare has no value
2 | analyze --tokenize --cased | --tokenize has no value
2 | analyze --plot --help | --plot has no value
2 | analyze --top 3 --top 4 | --top is given more than once. Give it once
2 | score --lowercase --cased text | --lowercase/--cased is given more than once
2 | score --threads 0 text | '--threads': must be 1 or more, not '0'
2 | score --samples x text | must be a whole number, not 'x'
2 | score --json --format tsv text | --json and --format tsv are two formats. Give one
2 | score | there is nothing to score. Give translations or a run
2 | score --target text | --target needs a model. Add `--run RUN`
2 | score --run a --target text | --target needs --source and one model. Add `--source FILE`
2 | analyze | no analysis is chosen. Choose one or more of --by-length
1 | --log-file no/folder/log score -r a b | no/folder/log: cannot write: No such file or directory
"""


def cases(text):
    return [re.split(r" \|(?: |$)", line) for line in text.strip().splitlines()]


def said_by(done):
    """Read what the command said; a box of typer's breaks long lines."""
    return "".join(line.strip("│").removeprefix(" ") for line in done.stderr.decode().splitlines())


def words(text):
    return "".join(text.split())


@pytest.mark.parametrize(("code", "line", "message"), cases(REFUSED))
def test_a_refused_command_line_has_a_message(code, line, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = synmt(*shlex.split(line))
    assert (done.returncode, done.stdout) == (int(code), b""), done.stderr
    assert words(message) in words(said_by(done))
    assert "Traceback" not in said_by(done)


EVIL = "a\x1b]0;title\x07\x9b31m\u202e[red]\x7f[/]"
SHOWN = r"a\x1b]0;title\x07\x9b31m\u202e[red]\x7f[/]"
# the part that every message shows
FIRST = r"a\x1b]0;title\x07\x9b31m\u202e"

HOSTILE = """
train EVIL
train recipe.yaml
train quickstart EVIL=1
train quickstart model.EVIL=1
prepare EVIL
train --list EVIL
train --seeds EVIL quickstart
translate --run EVIL
parse EVIL --lang en --model compact
parse --model EVIL --lang en
score EVIL
score text -r EVIL
score text -r text --metrics EVIL
analyze --by-length --run EVIL
EVIL
--EVIL
score --EVIL
translate --beam-size EVIL
score --format EVIL
--log-file EVIL/EVIL score
"""


@pytest.mark.parametrize("line", HOSTILE.strip().splitlines())
def test_control_characters_are_shown_in_errors(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a\n")
    Path("recipe.yaml").write_text(f'source: en\n"{SHOWN}": 1\n')
    evil = EVIL.removesuffix("[/]") if "/" in line else EVIL
    done = synmt("--log-file", "log", *(word.replace("EVIL", evil) for word in line.split()))
    assert done.returncode in (1, 2)
    assert FIRST in said_by(done)
    log = Path("log").read_text(encoding="utf-8") if Path("log").exists() else ""
    assert not set("\x1b\x07\x9b\u202e\x7f") & set(done.stderr.decode() + log)
