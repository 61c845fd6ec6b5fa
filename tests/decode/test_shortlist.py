"""Searches over shortlists: against a search in plain Python over the same pieces, and against a
search over all; what may be in a shortlist, against a loop over pairs of sentences."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from searching import SEARCHES, assert_found, assert_same_search, members_of, next_logs, run
from searching import plain_search as slow_search
from small import PIECES, random_batch
from test_beam import PREFIXES, models_of, of_each_system
from tiny import succeed, write_corpus, write_recipe

from synmt.data.candidates import learn_candidates
from synmt.data.corpus import Example
from synmt.data.vocabulary import EOS, PAD
from synmt.decode.next_piece import Member
from synmt.decode.options import SearchOptions
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.run_folder import CANDIDATES
from synmt.syntax.conllu import read_conllu

SOME = torch.randint(EOS + 1, PIECES, (PIECES, 3), generator=torch.Generator().manual_seed(3))
EVERY = torch.arange(PIECES).expand(PIECES, -1)


def pieces_of(source, prefix):
    """Collect what a sentence may be translated with."""
    read = [PAD, *source]
    return {*range(EOS + 1), *prefix, *(piece for one in read for piece in SOME[one].tolist())}


@of_each_system
def test_a_search_over_shortlists_finds_what_a_slow_one_finds(system):
    models = models_of(system, seed=4)
    _, batch = random_batch(models[-1], [5, 3, 9, 4], seed=2)
    options = SearchOptions(beam_size=4, n_best=2, length_penalty=0.6, shortlist=3)
    found = run(members_of(batch, *models), options, 7, prefixes=PREFIXES, candidates=SOME)
    for row, (hypotheses, prefix) in enumerate(zip(found, PREFIXES, strict=True)):
        every = [next_logs([member]) for member in members_of(batch, *models, row=row)]
        source = batch.source.ids[row][batch.source.mask[row]].tolist()
        outside = [*{*range(PIECES)} - pieces_of(source, prefix)]

        def logs(pieces, every=every, outside=outside):
            parts = torch.tensor([of_member(pieces) for of_member in every])
            parts[:, outside] = -math.inf
            return parts.softmax(1).mean(0).log().tolist()

        assert_found(hypotheses, slow_search(logs, options, 7, prefix))


@of_each_system
@pytest.mark.parametrize("options", SEARCHES)
def test_a_shortlist_of_all_pieces_changes_nothing(system, options):
    models = models_of(system, seed=11)
    _, batch = random_batch(models[-1], [3, 7, 1, 11], seed=1)
    models[0].output_bias = torch.nn.Parameter(torch.linspace(0, 2, PIECES))
    options = SearchOptions(**options)
    found, expected = (
        run(members_of(batch, *models), options, 14, prefixes=PREFIXES, candidates=candidates)
        for candidates in (EVERY, None)
    )
    assert_same_search(found, expected)


def test_the_fast_decoder_reads_the_same_shortlists():
    [model] = models_of("post")
    _, batch = random_batch(model, [3, 7, 1, 11], seed=1)
    [member] = members_of(batch, model)
    fast = Member(model, member.source, member.signals, model.predictor())
    assert fast.decoder is not model
    options = SearchOptions(beam_size=4, n_best=4)
    found = [run([one], options, 14, candidates=SOME) for one in (fast, member)]
    assert_same_search(*found)


class Pairs(list):
    """Sentence pairs, read like those of a prepared corpus."""

    def rows(self, numbers):
        return [Example(number, *self[number]) for number in numbers]


@pytest.mark.parametrize("joint", [False, True])
def test_candidates_are_those_of_a_loop_over_pairs(joint, monkeypatch):
    monkeypatch.setattr("synmt.data.candidates._CHUNK", 7)
    random = np.random.default_rng(0)
    lengths = random.integers(1, 9, (30, 2))
    pairs = Pairs([random.integers(4, 16, size) for size in row] for row in lengths)
    assert learn_candidates(pairs, (20, 20), 30, joint=joint).shape == (20, 31)
    found = learn_candidates(pairs, (20, 20), 5, joint=joint)
    texts = [({*e.tolist()}, {*f.tolist()}) for e, f in pairs]
    for piece in range(4, 20):
        scores = {}
        for other in range(4, 16):
            of_both = sum(piece in e and other in f for e, f in texts)
            if of_both:
                alone = sum(piece in e for e, _ in texts) * sum(other in f for _, f in texts)
                scores[other] = of_both * math.log(of_both * len(texts) / alone)
        best = sorted(scores, key=lambda other: (-round(scores[other], 9), other))[:5]
        expected = best + [PAD] * (5 - len(best))
        assert found[piece].tolist() == [piece if joint else PAD, *expected]
    often = sorted(range(4, 16), key=lambda other: (-sum(other in f for _, f in texts), other))
    assert found[PAD].tolist()[1:5] == often[:4]


@pytest.mark.journey
def test_a_run_learns_its_shortlist_and_translates_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = write_corpus(tmp_path / "text")
    vocabulary = {"kind": "bpe", "size": 320, "joint": True}
    decoding = {"beam_size": 2, "max_length_ratio": 1.0, "max_length_extra": 2, "shortlist": 3}
    recipe = write_recipe(tmp_path / "x.yaml", text, vocabulary=vocabulary, decoding=decoding)
    run = tmp_path / "runs/x"
    succeed("train", recipe, "decoding.shortlist=0")
    assert not (run / CANDIDATES).exists()
    # a finished run gets one, too
    succeed("train", recipe)
    candidates = load_file(run / CANDIDATES)["candidates"]
    assert candidates.shape == (320, 4)
    assert f" {CANDIDATES}\n" in (run / "checksums.sha256").read_text().replace("*", " ")
    # before the model has learned anything, it would choose other pieces
    translator = Translator.load(run, device="cpu")
    line = (text / "test.en").read_text().split("\n")[0]
    source = translator.source.encode_ids(line)
    [tree] = [tree for text_of, tree in read_conllu(text / "test.en.conllu") if text_of == line]
    [translation] = translator.translate([line], [tree])
    wanted = {*candidates[[PAD, *source, EOS]].ravel().tolist()}
    assert {*translation.best.pieces} <= wanted
    (run / CANDIDATES).unlink()
    for count in (0, 3):
        translator = Translator.load(run, device="cpu", shortlist=count)
        with pytest.raises(UsageError, match="shortlist has 0 pieces") if count else nullcontext():
            list(translator.translate([line], [tree]))
