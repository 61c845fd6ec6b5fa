"""What a GPU that is lent for a few minutes is used for: one call does as much as fits, the next
call goes on.

    python benchmarks/gpu.py --out results/gpu --minutes 9

The tests that need a GPU come first, then training and translation compared with other tools, then
runs of a comparison (--plan), as many at once as --at-once says. Each step leaves OUT/NAME.json
with its command, its seconds and what it printed; a step that has succeeded is not done again. A
step that does not fit any more is stopped, and left for the next call. --device cpu tries all of it
with tiny models.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import measuring

ROOT = Path(__file__).resolve().parent.parent
STEPS = """
tests: env SYNMT_TEST_GPU=1 PYTHON -m pytest tests/model/test_gpu.py
training-bf16: PYTHON benchmarks/train_throughput.py SIZES --device DEVICE --precision bf16 \
    --lengths 28 --systems plain pascal relative ldd marian
training-float32: PYTHON benchmarks/train_throughput.py SIZES --device DEVICE --lengths 28 \
    --systems plain pascal relative marian
steps: PYTHON -m synmt train controlled-base name=steps training.max_steps=STEPS \
    training.validate_every=STEPS training.device=DEVICE --runs OUT
steps-recorded: PYTHON -m synmt train controlled-base name=steps-recorded \
    training.cuda_graphs=GRAPHS training.max_steps=STEPS training.validate_every=STEPS \
    training.device=DEVICE --runs OUT
model: PYTHON -m synmt train controlled-base name=gpu model.size=SIZE training.max_steps=STEPS \
    training.validate_every=STEPS training.device=DEVICE --runs OUT
translation: PYTHON benchmarks/translate_throughput.py --run OUT/gpu --device DEVICE \
    --text OUT/gpu/tests/test/source.txt --rounds ROUNDS --sizes BATCHES
"""
WORDS = {
    "SIZES": "--size base --batch-tokens 8192 --rounds 7",
    "SIZE": "base",
    "STEPS": "1500",
    "GRAPHS": "true",
    "ROUNDS": "5",
    "BATCHES": "256 512 1000",
}
TINY = {
    "SIZES": "--size tiny --batch-tokens 256 --rounds 1",
    "SIZE": "tiny",
    "STEPS": "3",
    "GRAPHS": "false",
    "ROUNDS": "1",
    "BATCHES": "16",
}


def main() -> None:
    """Do what is left, until the minutes are over."""
    options = measuring.arguments(
        __doc__, out=Path, minutes=9.0, device="cuda", plan="results/published.yaml", at_once=6
    )
    end, out = time.monotonic() + 60 * options.minutes, options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    words = {"PYTHON": sys.executable, "DEVICE": options.device, "OUT": str(out)}
    words |= TINY if options.device == "cpu" else WORDS
    for step in STEPS.replace("\\\n", "").strip().splitlines():
        name, _, command = step.partition(": ")
        for word in sorted(words, key=len, reverse=True):
            command = command.replace(word, words[word])
        path = out / f"{name}.json"
        if time.monotonic() > end:
            break
        if not path.exists() or json.loads(path.read_text())["code"] != 0:
            path.write_text(json.dumps(done(command, end - time.monotonic()), indent=1))
    device = f"training.device={options.device}"
    train = [sys.executable, "benchmarks/results.py", options.plan, device]
    runs = [subprocess.Popen(train, cwd=ROOT) for _ in range(options.at_once)]
    while time.monotonic() < end and any(run.poll() is None for run in runs):
        time.sleep(1)
    # each keeps its last checkpoint
    for run in runs:
        run.terminate()


def done(command: str, seconds: float) -> dict[str, object]:
    """Run a command for at most some seconds: its exit code, None if it had to be stopped, and what
    it printed."""
    began = time.monotonic()
    try:
        ended = subprocess.run(
            command.split(), cwd=ROOT, capture_output=True, text=True, timeout=seconds
        )
        code, output = ended.returncode, ended.stdout + ended.stderr
    except subprocess.TimeoutExpired as stopped:
        code, output = None, (stopped.stdout or b"").decode(errors="replace")
    return {
        "command": command,
        "code": code,
        "seconds": time.monotonic() - began,
        "output": output,
    }


if __name__ == "__main__":
    main()
