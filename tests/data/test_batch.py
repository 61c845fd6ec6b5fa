"""What a batch holds: limits, order, padding, shifting, and what it says where there are no
parses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small import MONKEY, MONKEY_WORD_OF, random_example

from synmt.data.batch import collate, collate_signals, collate_source
from synmt.data.corpus import Example, Tree
from synmt.data.vocabulary import BOS, EOS, PAD
from synmt.syntax.reading import Reading
from synmt.syntax.signals import PARENT_MIDDLE, Signal

MONKEY_PAIR = Example(
    0, np.arange(10, 17), np.arange(20, 24), {"source": Tree(MONKEY, MONKEY_WORD_OF)}
)


def test_targets_are_shifted_by_one_and_padded():
    rows = [(7, [5, 6, 7], [8, 9]), (3, [5], [4, 5, 6])]
    batch = collate([Example(line, *map(np.array, sides)) for line, *sides in rows])
    assert batch.source.ids.tolist() == [[5, 6, 7, EOS], [5, EOS, PAD, PAD]]
    assert batch.source.mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.target_input.tolist() == [[BOS, 8, 9, PAD], [BOS, 4, 5, 6]]
    assert batch.target_output.tolist() == [[8, 9, EOS, PAD], [4, 5, 6, EOS]]
    assert len(batch.target_positions) == 7
    assert batch.lines == (7, 3)
    assert (batch.source_signals, batch.target_signals) == ({}, {})


def test_a_source_without_pieces_is_its_end():
    assert collate_source([np.array([], int), np.array([4])]).ids.tolist() == [[EOS, PAD], [4, EOS]]


@pytest.mark.parametrize("axes", [(0,), (0, 0), (3, 0, 0)], ids=["T", "TT", "GTT"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.bool_])
def test_signals_of_every_shape_are_padded_along_every_axis_of_length_t(axes, kind):
    def compute(parse, word_of):
        shape = [axis or len(word_of) for axis in axes]
        return np.arange(np.prod(shape)).reshape(shape).astype(kind)

    random = np.random.default_rng(0)
    examples = [random_example(words, random) for words in (4, 1, 6)]
    signal = Signal("it", needs="parents", compute=compute, pad=7.0)
    padded = collate_signals(examples, "source", Reading([signal]))["it"]
    values = [compute(None, np.append(e.trees["source"].word_of, -1)) for e in examples]
    expected = np.full((3, *np.max([array.shape for array in values], axis=0)), 7, np.float32)
    for array, row in zip(values, expected, strict=True):
        row[tuple(map(slice, array.shape))] = array
    np.testing.assert_array_equal(padded.numpy(), expected)
    assert padded.dtype == (torch.int64 if np.issubdtype(kind, np.integer) else torch.float32)


def test_a_corpus_without_parses_is_no_riddle():
    plain = replace(MONKEY_PAIR, trees={})
    with pytest.raises(AssertionError, match="reads trees of the source"):
        collate([MONKEY_PAIR, plain], Reading([PARENT_MIDDLE]))
    assert collate([plain]).source_signals == {}


def test_a_batch_moves_with_all_that_is_in_it():
    batch = collate([MONKEY_PAIR], Reading([PARENT_MIDDLE])).to(torch.device("meta"))
    source, inputs = batch.source, [batch.target_input, batch.target_output]
    tensors = [source.ids, source.mask, *inputs, *batch.source_signals.values()]
    assert all(tensor.is_meta for tensor in tensors)
    # to ask a GPU for them would wait for it
    assert source.lengths.device.type == "cpu"
    assert batch.lines == (0,)
