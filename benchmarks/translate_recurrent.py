"""Sentences per second of LSTMs, greedy and with a beam of 5: synmt and JoeyNMT, with models of one
size.

The weights are random and EOS is next to never chosen, so that both make as many steps as they may:
half of RATIO times the source and EXTRA pieces. No sentence leaves early, which would help synmt
alone. The systems take turns; times are medians over the rounds.

    python benchmarks/translate_recurrent.py --size base --threads 2
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import measuring
import numpy as np
import torch
from peers import joeynmt_batch, joeynmt_lstm
from systems import model_of, recipe_of

from synmt.data.batch import collate_source
from synmt.data.vocabulary import EOS
from synmt.decode.beam import Member, search
from synmt.decode.options import SearchOptions

RATIO, EXTRA = 1.5, 20
"""The longest translation allowed is RATIO times its source and EXTRA pieces."""
Search = Callable[[list[list[int]], int], object]
"""Translates sentences of like length, into at most as many pieces."""


def ours(options: argparse.Namespace, beam: int) -> Search:
    """Search with synmt."""
    model = model_of("lstm", options.size, options.pieces).eval()
    how = SearchOptions(beam_size=beam, length_penalty=1.0)

    def translate(batch: list[list[int]], limit: int) -> object:
        source = collate_source([np.array(sentence) for sentence in batch])
        return search([Member(model, source, {})], how, limits=torch.full((len(batch),), limit))

    return translate


def joeynmt(options: argparse.Namespace, beam: int) -> Search:
    """Search with JoeyNMT."""
    from joeynmt.search import search as joeynmt_search

    model = joeynmt_lstm(recipe_of("lstm", options.size).model, options.pieces).eval()

    def translate(batch: list[list[int]], limit: int) -> object:
        joey = joeynmt_batch(collate_source([np.array(sentence) for sentence in batch]), None)
        return joeynmt_search(model, joey, limit, beam, beam_alpha=1.0, generate_unk=False)

    return translate


def translate_all(translate: Search, sentences: list[list[int]], batch_size: int) -> None:
    """Translate everything, longest first."""
    ordered = sorted(sentences, key=len, reverse=True)
    for first in range(0, len(ordered), batch_size):
        translate(
            ordered[first : first + batch_size], int(RATIO * len(ordered[first]) + EXTRA) // 2
        )


def main() -> None:
    """Measure the systems in turn, and print their speeds."""
    options = measuring.arguments(
        __doc__, size="small", pieces=8000, sentences=256, batch_size=64, rounds=5, threads=2
    )
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    # the lengths of image captions: 6 to 40 pieces, 15 on average
    lengths = random.gamma(6.0, 2.0, options.sentences).astype(int).clip(3, 37) + 3
    sentences = [random.integers(EOS + 1, options.pieces, length).tolist() for length in lengths]
    searches = {
        f"{make.__name__} {beam}": make(options, beam)
        for beam in (1, 5)
        for make in (ours, joeynmt)
    }
    systems = {
        name: partial(translate_all, one, sentences, options.batch_size)
        for name, one in searches.items()
    }
    times = measuring.take_turns(systems, options.rounds)
    print(measuring.speeds(times, len(sentences), lambda name: f"joeynmt {name.split()[1]}"))


if __name__ == "__main__":
    main()
