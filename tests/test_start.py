"""What a command loads before its first line, by count: no timing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_run import PASCAL, TEXT, make_run
from tiny import write_corpus, write_lines, write_recipe

import synmt
from synmt.data.vocabulary import Vocabulary
from synmt.decode.loaded_model import load_model
from synmt.files.reading import cache_folder, stored_sha256
from synmt.model.build import build_for
from synmt.model.weights import WithoutInitialValues, load_weights
from synmt.parsing.models import COMPACT
from synmt.parsing.parser import StanzaParser
from synmt.training.optimizer import Adam

HEAVY = (
    "stanza",
    "torch._dynamo",
    "torch._inductor",
    "sympy",
    "scipy",
    "sacrebleu",
    "networkx",
    "transformers",
    "mtdata",
)


ONE_BY_ONE = """
import json, os, sys
from synmt.cli import main
given, *commands = sys.argv[1:]
for command in commands:
    loads, _, line = command.rpartition("] ")
    if loads:
        __import__(loads[1:])
    child = os.fork()
    if child:
        assert not os.waitpid(child, 0)[1], command
        print(json.dumps([open(name).read() for name in ("said", "loaded")]))
        continue
    os.dup2(os.open(given, os.O_RDONLY), 0)
    os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    sys.argv = ["synmt", "--quiet", *line.split()]
    code = 1
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdout.flush()
        with open("loaded", "w") as loaded:
            print(*sys.modules, file=loaded)
        os._exit(code)
"""
"""Commands in forks of a process that has loaded no more than a command which begins, and from then
on what is loaded for one of them, which it would load itself."""


def loaded_by(place: Path, given: str, *commands: str) -> list[tuple[str, set[str]]]:
    """Run commands, each perhaps after a module in brackets: what each writes to stdout, and the
    heavy modules that it has loaded."""
    command = [sys.executable, "-c", ONE_BY_ONE, given, *commands]
    environment = {**os.environ, "SYNMT_CACHE": "cache"}
    done = subprocess.check_output(command, cwd=place, env=environment, text=True)
    found = map(json.loads, done.splitlines())
    return [(said, {*HEAVY, "torch"}.intersection(loaded.split())) for said, loaded in found]


WITHOUT_POSIX = """
import os, signal, sys
sys.modules.update(dict.fromkeys(["fcntl", "grp", "pwd", "resource", "termios"]))
# of sacreBLEU; it imports fcntl because this system is no Windows
sys.modules["portalocker"] = type(sys)("portalocker")
for owner, names in (
    (os, "fork getloadavg killpg mkfifo O_NOFOLLOW sched_getaffinity sysconf"),
    (signal, "SIGALRM SIGHUP SIGKILL SIGPIPE SIGUSR1 alarm pthread_sigmask setitimer"),
):
    for name in names.split():
        delattr(owner, name)
"""
"""What Windows does not have. Python runs it at its start, also in processes of processes."""


@pytest.mark.journey
def test_every_module_works_without_what_only_posix_has(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_POSIX)
    script = tmp_path / "script.py"
    script.write_text(
        "import importlib, pathlib, pkgutil, sys\n"
        "import synmt\n"
        "def twice(state, item):\n    return state * item\n"
        "if __name__ == '__main__':\n"
        "    for found in pkgutil.walk_packages(synmt.__path__, 'synmt.'):\n"
        "        found.name == 'synmt.__main__' or importlib.import_module(found.name)\n"
        "    from synmt.files import writing\n"
        "    from synmt.parallel.processes import in_processes\n"
        "    here = pathlib.Path(sys.argv[1])\n"
        "    with writing.write_output(here / 'out') as stream:\n"
        "        stream.write(str(sorted(in_processes(twice, 2, iter([1, 2]), 2, where=here))))\n"
        "    with writing.write_folder_atomically(here / 'folder') as folder:\n"
        "        writing.write_json(folder / 'one.json', 1)\n"
    )
    out = tmp_path / "here"
    out.mkdir()
    path = os.pathsep.join([str(tmp_path), str(Path(synmt.__file__).parents[1])])
    subprocess.run(
        [sys.executable, script, out], env={**os.environ, "PYTHONPATH": path}, check=True
    )
    assert (out / "out").read_text() == "[2, 4]"
    assert {found.name for found in out.iterdir()} == {"out", "folder"}


LOADS = """
train --list =>
score -r text text --metrics chrf => sacrebleu
analyze --hypotheses text --references text --source text --by-length => sacrebleu
[torch] train tiny.yaml => torch sacrebleu
"""
"""The command line, and what it loads."""


@pytest.mark.journey
def test_a_command_loads_what_it_needs_a_cached_tree_no_stanza_and_a_new_one_no_compiler(tmp_path):
    write_recipe(tmp_path / "tiny.yaml", write_corpus(tmp_path / "corpus"))
    write_lines(tmp_path / "text", TEXT)
    make_run(tmp_path / "run", PASCAL)
    lines, needed = zip(*(line.split(" =>") for line in LOADS.strip().splitlines()), strict=True)
    translate = ["translate --run run --device cpu"] * 2
    *done, (first, parsed), again = loaded_by(tmp_path, "text", *lines, *translate)
    assert [loaded for _, loaded in done] == [set(names.split()) for names in needed]
    assert "stanza" in parsed
    assert not parsed & {"torch._dynamo", "torch._inductor", "sympy"}
    assert again == (first, {"torch"})


def test_the_optimizer_updates_weights_like_the_one_of_torch_bit_for_bit():
    options = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.1, "fused": True}
    trained = []
    for kind in (Adam, torch.optim.AdamW):
        torch.manual_seed(0)
        weights = [torch.nn.Parameter(torch.randn(5, 3)) for _ in range(2)]
        optimizer = kind(weights, **options)
        for step in range(4):
            sum((weight**3).sum() for weight in weights).backward()
            # like a step whose loss is not finite
            optimizer.found_inf = torch.tensor(float(step == 2))
            optimizer.step()
            optimizer.zero_grad()
            assert all(weight.grad is None for weight in weights)
        trained.append(weights)
    assert all(map(torch.equal, *trained))
    assert not torch.equal(trained[0][0], trained[0][1])


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A folder with a copy of the compact model, and an empty cache."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(COMPACT, tmp_path / "models"))


@pytest.fixture
def hashed(monkeypatch):
    """Count the files that are hashed."""
    names: list[str] = []
    plain = stored_sha256
    monkeypatch.setattr(
        "synmt.parsing.parser.stored_sha256",
        lambda path: names.append(path.parent.name) or plain(path),
    )
    return names


def test_the_identity_of_a_parser_is_stored(models, hashed, monkeypatch, tmp_path):
    identity = StanzaParser("en", model=str(models)).identity
    assert sorted(hashed) == ["depparse", "pos", "tokenize"]
    again = StanzaParser("en", model=str(models), arcs=True).identity
    assert again == {**identity, "arcs": True}
    assert list(again) == [*identity, "arcs"]
    assert len(hashed) == 3
    # another package is another parser
    assert StanzaParser("en", model=str(models), package="default_fast").folder == models
    # one that is damaged is made anew, and without a cache it is the same
    [stored] = (cache_folder() / "parsers").glob("*.json")
    for content in ("", '{"folder": ".", "files": {}, "facts": {}}', '{"files": {"x": 1}}'):
        stored.write_text(content)
        assert StanzaParser("en", model=str(models)).identity == identity
        assert json.loads(stored.read_text())["facts"]["files"] == identity["files"]
    (tmp_path / "file").touch()
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "file"))
    assert StanzaParser("en", model=str(models)).identity == identity


@pytest.mark.parametrize("name", ["en/tokenize/compact.pt", "resources.json"])
def test_a_replaced_file_is_read_again(models, hashed, name):
    identity = StanzaParser("en", model=str(models)).identity
    # the same content and time
    os.replace(shutil.copy2(models / name, models / "other"), models / name)
    assert StanzaParser("en", model=str(models)).identity == identity
    assert len(hashed) == 6


def spoilt(path: Path) -> None:
    """Change a byte of a file, and give it back its old time."""
    state, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)


def test_a_changed_model_is_noticed_even_with_its_old_size_and_time(models, hashed):
    before = StanzaParser("en", model=str(models))
    identity, fingerprint = before.identity, before.fingerprint
    spoilt(models / "en" / "pos" / "compact.pt")
    after = StanzaParser("en", model=str(models))
    assert after.fingerprint != fingerprint
    different = {
        name for name, value in after.identity["files"].items() if value != identity["files"][name]
    }
    assert different == {"en/pos/compact.pt"}
    assert len(hashed) == 6


@pytest.mark.parametrize("variants", [[], [PASCAL]])
def test_a_loaded_model_equals_one_that_drew_its_initial_values(tmp_path, variants):
    run = make_run(tmp_path / "run", *variants)
    recipe = run.recipe()
    source, target = (Vocabulary.load(run.folder, side) for side in ("source", "target"))
    drawn = build_for(recipe, source, target)
    load_weights(run.weights, drawn)
    loaded = load_model(run, recipe, device="cpu", checkpoint="final").model
    tensors = dict([*loaded.named_parameters(), *loaded.named_buffers()])
    expected = dict([*drawn.named_parameters(), *drawn.named_buffers()])
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in expected.items())


def test_without_initial_values_no_random_number_is_drawn():
    state = torch.random.get_rng_state()
    with WithoutInitialValues():
        torch.nn.init.xavier_uniform_(torch.nn.Linear(4, 4).weight)
        torch.nn.Embedding(4, 4).weight.data.normal_()
    assert torch.equal(torch.random.get_rng_state(), state)
