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
1 | train --list nix nil | no shipped recipe contains nix and nil. `synmt train --list` shows all
1 | train --keys zz tree | no key of a recipe contains zz and tree. `synmt train --keys` shows all
2 | train quickstart --seeds 1,1 | seeds: [1, 1] does not choose seeds
2 | train quickstart nowhere --seeds 1, training.max_step=3 | no file or shipped recipe 'nowhere'
2 | --docs scael | --docs: there is no page 'scael'. Did you mean 'scale'?
2 | --docs zzzz | there is no page 'zzzz'. `synmt --docs` lists all
2 | score --threads 0 text | '--threads': Input should be greater than or equal to 1
2 | score --samples x text | should be a valid integer
2 | score | there is nothing to score. Give translations or a run
2 | score --target text | --target needs a model. Add `--run RUN`
2 | score --run a --target text | --target needs --source and one model. Add `--source FILE`
2 | analyze --by-length --unit word | is not one of
2 | analyze --by-length --side taget | is not one of
2 | analyze | no analysis is chosen. Choose one or more of --by-length
1 | --log-file no/folder/log score -r a b | no/folder/log: cannot write: No such file or directory
"""


def cases(text):
    return [re.split(r" \|(?: |$)", line) for line in text.strip().splitlines()]


@pytest.mark.parametrize(("code", "line", "message"), cases(REFUSED))
def test_a_refused_command_line_has_a_message(code, line, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = synmt(*shlex.split(line))
    assert (done.returncode, done.stdout) == (int(code), b""), done.stderr
    said = done.stderr.decode()
    assert message in said
    assert "Traceback" not in said


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
    assert FIRST in done.stderr.decode()
    log = Path("log").read_text(encoding="utf-8") if Path("log").exists() else ""
    assert not set("\x1b\x07\x9b\u202e\x7f") & set(done.stderr.decode() + log)
