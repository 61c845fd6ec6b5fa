"""Finished windows: what is read from disk is what was translated."""

from dataclasses import replace

import numpy as np

from synmt.decode.inputs import Request
from synmt.decode.override import CounterfactualTranslation
from synmt.decode.remote import FinishedWindows
from synmt.decode.translation import Candidate, Translation, WordAlignment

_SPANS = np.array([[0, 1], [2, 5]])
_PLAIN = Translation(
    7,
    (Candidate("Ein \u2028 Hund", -0.1, -1 / 3, (4, 5)), Candidate("", -2.5e-17, -3.0, (), "ein")),
    2,
    ("ß",),
    "loop",
)
_ALIGNED = replace(_PLAIN, alignment=WordAlignment([(0, 1), (1, 0)], _SPANS, _SPANS[:0]))
_EMPTY = Translation(8)


def test_results_of_all_kinds_survive_on_disk(tmp_path):
    results = [_PLAIN, _ALIGNED, _EMPTY, CounterfactualTranslation(_ALIGNED, _EMPTY, -0.1 - 0.2)]
    windows = FinishedWindows(tmp_path / "windows", "a job")
    window = (1, [Request(f"line {number}") for number in range(len(results))])
    (first,) = windows.translate(iter([window]), lambda some: (results for _ in some))
    assert first is results
    (second,) = windows.translate(iter([window]), lambda some: (None for _ in some))
    # what is written shows the kinds of numbers, too; arrays have no simple equality
    assert repr(second) == repr(results)
