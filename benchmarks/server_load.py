"""Serve a run to many clients at once: throughput compared with that of the command, and latency.

    python benchmarks/server_load.py --run runs/quickstart --seconds 60 --plot docs/serving.png

Other options are those of both, such as --beam-size.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_HEAD = (
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def translated(run: Path, lines: Sequence[str], options: Sequence[str]) -> tuple[list[str], float]:
    """Translate a file by the command; returns the translations, and the seconds without the
    loading, which an empty file takes."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "source"), Path(folder, "output")
        for text in ("", "".join(f"{line}\n" for line in lines)):
            source.write_text(text, encoding="utf-8")
            began = time.monotonic()
            command = ["translate", source, "--run", run, "-o", output, "--no-parse-cache"]
            subprocess.run([sys.executable, "-m", "synmt", "-q", *command, *options], check=True)
            seconds.append(time.monotonic() - began)
        return output.read_text(encoding="utf-8").splitlines(), seconds[1] - seconds[0]


async def ask(
    port: int, expected: dict[str, str], lines: Sequence[str], clients: int, seconds: float
) -> tuple[list[float], int]:
    """Let clients ask for a line each, again and again; returns the latencies in seconds, and how
    many answers were not the command's."""
    latencies, wrong, end = list[float](), 0, time.monotonic() + seconds

    async def one(number: int) -> None:
        nonlocal wrong
        # bare connections: a library for 200 of them needs as much time as the server
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            line = lines[number % len(lines)]
            number += clients
            began = time.monotonic()
            body = json.dumps({"q": line, "source": "en", "target": "de"}).encode()
            writer.write(_HEAD % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split()[0])
            answer = json.loads(await reader.readexactly(size))
            latencies.append(time.monotonic() - began)
            wrong += answer.get("translatedText") != expected[line]
        writer.close()

    await asyncio.gather(*map(one, range(clients)))
    return latencies, wrong


def memory(process: int) -> int:
    """Read the memory of a process in MiB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


def plot(latencies: Sequence[float], path: Path) -> None:
    """Draw the share of requests that are answered within a time."""
    from matplotlib import pyplot

    from synmt.reporting.figures import ONE, save_figure

    def draw() -> pyplot.Figure:
        figure, axes = pyplot.subplots(figsize=(5, 2.6), layout="constrained")
        axes.ecdf(latencies, color=ONE)
        axes.set(xlabel="seconds until the answer", ylabel="share of requests")
        axes.set_xlim(left=0)
        return figure

    save_figure(draw, path)


def main() -> None:
    """Measure, and print one line for each number of clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("runs/quickstart"))
    parser.add_argument("--source", type=Path, help="lines to translate; default: the run's test")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 200])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--plot", type=Path)
    asked, options = parser.parse_known_args()
    source = asked.source or asked.run / "tests" / "test" / "source.txt"
    lines = list(dict.fromkeys(source.read_text(encoding="utf-8").splitlines()))
    texts, seconds = translated(asked.run, lines, options)
    expected = dict(zip(lines, texts, strict=True))
    print(f"command: {len(lines) / seconds:.0f} lines/s")
    command = [sys.executable, "-m", "synmt", "translate", "--serve", "0", "--run", asked.run]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        port = int(server.stderr.readline().split()[2].rpartition(":")[2])
        for clients in asked.clients:
            before = memory(server.pid)
            latencies, wrong = asyncio.run(ask(port, expected, lines, clients, asked.seconds))
            rate = len(latencies) / asked.seconds
            low, middle, high = np.quantile(latencies, [0.5, 0.95, 1])
            print(
                f"{clients} clients: {rate:.0f} lines/s, {rate * seconds / len(lines):.2f} of the "
                f"command; half in {low:.2f} s, 95 % in {middle:.2f} s, all in {high:.2f} s; "
                f"{wrong} of {len(latencies)} wrong; {before} -> {memory(server.pid)} MiB"
            )
        server.terminate()
    if asked.plot:
        plot(latencies, asked.plot)


if __name__ == "__main__":
    os.environ.setdefault("SYNMT_THREADS", "2")
    main()
