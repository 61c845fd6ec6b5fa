"""Runs the command in processes that are killed at chosen moments.

A scene has `arguments` of the command, and perhaps one of

    kill: [event, number]     kill -9 at this event, counted from 1 (see `lie_in_wait`)
    rename: text              kill -9 before the first file takes a name that contains the text
    signal: number            send the signal when the first step has been logged
    full: step                let the disk be full after this step
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path

# loaded once where processes fork from
import sacrebleu  # noqa: F401

import synmt.model.weights
import synmt.training.pipeline
import synmt.training.records
import synmt.training.trainer
from synmt.cli import main
from synmt.evaluation import comparison

happened: Counter[str] = Counter()


def play(scenes: list[dict], results: Path) -> None:
    """Run scenes one after the other, and write what became of each as JSON."""
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    results.write_text(json.dumps([play_one(scene) for scene in scenes]))


def play_one(scene):
    """Run one scene in a child; gives its exit code (negative: the signal), and standard
    error."""
    errors, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write_end, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.close(errors)
        act(scene)
    os.close(write_end)
    said = b""
    with open(errors, "rb", buffering=0) as stream:
        while chunk := stream.read(1 << 16):
            said += chunk
            if "signal" in scene and b"step " in said:
                os.kill(child, scene.pop("signal"))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"code": code, "errors": said.decode()}


def act(scene):
    """Be the child."""
    lie_in_wait(scene)
    # tables are made in a moment
    comparison.SAMPLES = comparison.SWAPS = 10
    sys.argv = ["synmt", *scene["arguments"]]
    sys.stdin = open(os.devnull)  # noqa: SIM115
    code = 1
    try:
        main()
    except SystemExit as leaving:
        code = leaving.code or 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def lie_in_wait(scene):
    """Put a counter, and the trap, into every place where a file changes."""

    def reach(event):
        happened[event] += 1
        if scene.get("kill") == [event, happened[event]]:
            os.kill(os.getpid(), signal.SIGKILL)

    def replace(old, new, replace=os.replace):
        if "rename" in scene and scene["rename"] in str(new):
            os.kill(os.getpid(), signal.SIGKILL)
        reach("rename")
        replace(old, new)
        reach("renamed")

    def save_tensors(tensors, path, save_tensors=synmt.model.weights.save_tensors):
        save_tensors(tensors, path)
        with open(path, "r+b") as stream:
            whole = stream.read()
            stream.truncate(len(whole) // 2)
            reach("write")
            stream.seek(0)
            stream.write(whole)

    def update(trainer, batches, update=synmt.training.trainer.Trainer.update):
        done = update(trainer, batches)
        if scene.get("full") == trainer.state.step:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        reach("update")
        return done

    def counting(function, event):
        def call(*arguments, **options):
            reach(event)
            return function(*arguments, **options)

        return call

    os.replace = replace
    os.fsync = counting(os.fsync, "sync")
    shutil.rmtree = counting(shutil.rmtree, "remove")
    if "full" not in scene:
        synmt.model.weights.save_tensors = save_tensors
        synmt.training.checkpoint.save_tensors = save_tensors
    synmt.training.trainer.Trainer.update = update
    synmt.training.records.Log.write = counting(synmt.training.records.Log.write, "log")
