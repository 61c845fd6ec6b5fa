"""oneDNN generates code for each shape of a product: a search meets the same shapes again, and
keeps their code."""

import os
import random
import subprocess
import sys

import pytest
import torch
from small_run import TEXT, make_run

pytest.importorskip("synmt.fast")

pytestmark = [
    pytest.mark.journey,
    pytest.mark.skipif(
        not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN"
    ),
]

TRANSLATE = """
import sys
import torch
from synmt.decode.translator import Translator
from synmt.fast import packed
from synmt.recipe.schema import DecodingRecipe
# few rows are multiplied by oneDNN, too
packed._SMALL = 0
# a batch for each thread would be smaller
torch.set_num_threads(1)
batch_size = DecodingRecipe().batch_size
translator = Translator.load(sys.argv[1], device="cpu", max_length_ratio=0.5, batch_size=batch_size)
lines = sys.stdin.read().splitlines()
list(translator.translate(lines))
print("again", flush=True)
list(translator.translate(lines))
"""


def test_the_code_of_a_search_is_kept_for_the_next_batches(tmp_path):
    run = make_run(tmp_path / "run")
    draw = random.Random(1)
    words = " ".join(TEXT).split()
    lines = "\n".join(" ".join(draw.choices(words, k=draw.randint(1, 32))) for _ in range(300))
    done = subprocess.run(
        [sys.executable, "-c", TRANSLATE, str(run.folder)],
        input=lines,
        env={**os.environ, "ONEDNN_VERBOSE": "profile"},
        capture_output=True,
        text=True,
        check=True,
    )
    first, again = (part.splitlines() for part in done.stdout.split("again\n"))

    def count(lines, event):
        return sum(f",primitive,{event}," in line for line in lines)

    # more shapes than an earlier, smaller cache could hold
    assert count(first, "create:cache_miss") > 128
    assert count(again, "exec") > 1000
    assert count(again, "create:cache_miss") < 10
