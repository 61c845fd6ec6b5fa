"""Finished windows: what is read from disk is what was translated."""

from dataclasses import replace

from synmt.decode.inputs import Request
from synmt.decode.remote import FinishedWindows
from synmt.decode.translation import Candidate, PieceScores, Translation, WordAlignment

_PLAIN = Translation(
    7,
    (Candidate("Ein \u2028 Hund", -0.1, -1 / 3, (4, 5)), Candidate("", -2.5e-17, -3.0, (), "ein")),
    2,
    1,
    "loop",
)
_ALIGNED = replace(
    _PLAIN,
    alignment=WordAlignment([(0, 1), (1, 0)], [[0, 1], [2, 5]], []),
    parts=PieceScores([("▁Ein", -0.1), ("</s>", -2.0)], [-0.1]),
)
_EMPTY = Translation(8)


def test_results_of_all_kinds_survive_on_disk(tmp_path):
    results = [_PLAIN, _ALIGNED, _EMPTY, replace(_ALIGNED, other=_EMPTY, rescored=-0.1 - 0.2)]
    windows = FinishedWindows(tmp_path / "windows", "a job")
    window = [Request(f"line {number}", number) for number in range(len(results))]
    assert windows.read(window) is None
    windows.write(window, results)
    # what is written shows the kinds of numbers, too
    assert repr(windows.read(window)) == repr(results)
    assert windows.read(window[1:]) is None
