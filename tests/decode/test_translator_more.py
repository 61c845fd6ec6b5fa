"""Ensembles, prefixes, samples, alignments and other trees."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_run import LSTM, PASCAL, TEXT, make_run

from synmt.data.batch import collate
from synmt.data.vocabulary import SPECIALS, UNK, Words
from synmt.decode.alignment import whitespace_words
from synmt.decode.forced import force
from synmt.decode.inputs import Request, segment
from synmt.decode.options import Sampling
from synmt.decode.override import check_override, translate_counterfactually
from synmt.decode.rescoring import rescore
from synmt.decode.translation import piece_spans
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.parsing.parser import StanzaParser
from synmt.run_folder import Run
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey

LINES = [*TEXT[:3], "", "A dog."]
LABELLED = {
    "name": "dependency_distribution",
    "layers": [1],
    "heads": 2,
    "groups": [["nsubj"], ["obj"]],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "plain": make_run(folder / "plain", parser=False),
        "lstm": make_run(folder / "lstm", parser=False, model=LSTM),
        "pascal": make_run(folder / "pascal", PASCAL),
        "other": make_run(folder / "other", PASCAL, max_pieces=9),
    }


def rounded(translations):
    return [[(one.text, round(one.score, 3)) for one in t.candidates] for t in translations]


def found(translator, *trees):
    return rounded(translator.translate(LINES, *trees))


def test_a_model_twice_is_the_model_alone_and_order_does_not_matter(runs):
    alone = found(Translator.load(runs["pascal"]))
    assert found(Translator.load(runs["pascal"], runs["pascal"])) == alone
    both = found(Translator.load(runs["plain"], runs["lstm"], runs["pascal"]))
    assert both == found(Translator.load(runs["lstm"], runs["pascal"], runs["plain"]))
    assert both != alone


def test_an_ensemble_parses_once_for_each_parser_and_takes_what_all_take(runs, monkeypatch):
    calls = []
    parse = StanzaParser.parse
    monkeypatch.setattr(
        StanzaParser, "parse", lambda self, *args, **kw: calls.append(1) or parse(self, *args, **kw)
    )
    translator = Translator.load(runs["pascal"], runs["plain"], runs["other"], parse_cache=False)
    assert translator.max_pieces == 9
    assert any(t.dropped for t in translator.translate(LINES))
    assert len(calls) == 1
    trees = translator._tree_provider.trees(LINES)
    assert trees[0] is trees[2]
    assert trees[1] == [None] * len(LINES)


def test_the_members_of_an_ensemble_have_parsers_of_their_own(runs, caplog):
    other = Run(runs["other"].folder)
    other.write_info(parser={**other.info()["parser"], "stanza": "0.9"})
    translator = Translator.load(runs["pascal"], runs["lstm"], other, parse_cache=False)
    trees = translator._tree_provider.trees(LINES)
    assert trees[0] is not trees[2]
    assert all(t.text for t in translator.translate(TEXT))
    messages = [
        record.getMessage() for record in caplog.records if record.name.startswith("synmt.decode")
    ]
    assert len(messages) == len({*messages}) == 1 + sum("in one piece" in text for text in messages)


def test_lines_without_a_given_tree_are_parsed(runs):
    translator = Translator.load(runs["pascal"])
    own = translator.trees(LINES)
    given = [flat_parse(LINES[0]), None, None, None, flat_parse(LINES[4])]
    assert translator.trees(LINES, given) == [given[0], *own[1:4], given[4]]
    requests = [Request(line, tree=tree) for line, tree in zip(LINES, given, strict=True)]
    parsed, flat = found(translator), found(translator, map(flat_parse, LINES))
    assert rounded(translator.translate_requests(requests)) == [flat[0], *parsed[1:4], flat[4]]


def test_no_parser_is_loaded_where_none_is_needed(runs, monkeypatch):
    monkeypatch.setattr("synmt.decode.tree_provider.recorded_parser", None)
    translator = Translator.load(runs["pascal"])
    requests = [Request(line, tree=flat_parse(line) if line else None) for line in LINES]
    assert [bool(t.text) for t in translator.translate_requests(requests)] == [
        bool(line) for line in LINES
    ]
    assert [t.text for t in translator.translate(["", " \t"])] == ["", ""]


def test_a_wide_beam_takes_fewer_sentences_at_once(runs, monkeypatch):
    translator = Translator.load(runs["plain"], beam_size=7)
    monkeypatch.setattr("synmt.decode.translator._LOGITS", 2 * 7 * len(translator.target) + 1)
    assert [len(part) for part in translator.source_batches(TEXT, [None] * len(TEXT))] == [2, 2, 2]
    assert all(t.text for t in translator.translate(TEXT))


def test_runs_with_different_vocabularies_cannot_form_an_ensemble(runs, tmp_path):
    other = make_run(tmp_path / "words", parser=False)
    (other.folder / "target.model").unlink()
    Words([f"w{number}" for number in range(340 - len(SPECIALS))]).save(other.folder, "target")
    with pytest.raises(UsageError, match="its target vocabulary differs from that of"):
        Translator.load(runs["plain"], other)


@pytest.mark.parametrize("name", ["plain", "lstm"])
def test_every_translation_begins_with_its_prefix(runs, name):
    translator = Translator.load(runs[name], n_best=2)
    prefixes = ["Ein Hund", "", "Der", "Ein", " "]
    requests = [Request(line, prefix) for line, prefix in zip(LINES, prefixes, strict=True)]
    translations = translator.translate_requests(requests)
    for request, translation in zip(requests, translations, strict=True):
        assert all(one.text.startswith(request.prefix.strip()) for one in translation.candidates)
        assert len(translation.candidates) == (2 if request.text else 0)
    plain = list(translator.translate(LINES))
    assert [translations[k].text for k in (1, 4)] == [plain[k].text for k in (1, 4)]


def test_a_prefix_with_an_unknown_piece_names_its_line(runs):
    translator = Translator.load(runs["plain"])
    translator.target = Words(
        [f"w{number}" for number in range(len(translator.target) - len(SPECIALS))]
    )
    with pytest.raises(
        SynmtError,
        match="line 8: the target vocabulary has no piece for a part of the prefix 'w1 x'",
    ):
        translator.translate_requests([Request("A dog.", "w1 x")], 8)


def test_samples_depend_on_the_number_of_the_line_and_on_nothing_else(runs):
    options = {"n_best": 3, "sampling": Sampling(temperature=2.0, seed=4)}
    translator = Translator.load(runs["plain"], **options)
    whole = found(translator)
    assert found(Translator.load(runs["plain"], **options, batch_size=1)) == whole
    for number, same in ((5, True), (1, False)):
        [alone] = translator.translate_requests([Request(LINES[4])], number)
        assert ([one.text for one in alone.candidates] == [text for text, _ in whole[4]]) == same


def test_no_repeat_forbids_repeated_pieces(runs):
    def repeated(**options):
        found = Translator.load(runs["plain"], **options).translate(TEXT)
        pieces = [translation.candidates[0].pieces for translation in found]
        return [len(some) - len(set(some)) for some in pieces]

    assert any(repeated())
    assert not any(repeated(no_repeat=1))


@pytest.mark.parametrize("others", [[], ["lstm"]])
def test_rescoring_gives_the_log_probability_of_the_search(runs, others):
    translator = Translator.load(runs["pascal"], *(runs[name] for name in others))
    translations = list(translator.translate(LINES))
    again = rescore(
        translator.models, translator.read([Request(line) for line in LINES]), translations
    )
    assert sorted(again) == [0, 1, 2, 4]
    for index, written in again.items():
        assert written.log_probability == pytest.approx(
            translations[index].candidates[0].log_probability, abs=1e-3
        )


def test_pieces_add_their_characters_and_the_last_byte_has_the_character(runs):
    vocabulary = Translator.load(runs["plain"]).target
    ids = tuple(vocabulary.encode_ids("A 🙈 dog."))
    text = vocabulary.decode(ids)
    spans = piece_spans(ids, vocabulary)
    assert spans[0, 0] == 0
    assert spans[-1, 1] == len(text) == 8
    assert np.array_equal(spans[1:, 0], spans[:-1, 1])
    last = next(k for k, (start, end) in enumerate(spans.tolist()) if "🙈" in text[start:end])
    assert vocabulary.pieces(ids[last - 3 : last + 1]) == ["<0xF0>", "<0x9F>", "<0x99>", "<0x88>"]
    assert (spans[last - 3 : last, 0] == spans[last - 3 : last, 1]).all()
    assert piece_spans((), vocabulary).shape == (0, 2)


def slow_alignment(translator, line, translation):
    """Align by loops: mean of the heads of layer 1 of 2, sums over source words, means over target
    words."""
    one = segment(0, line, None, translator.source, 512)
    best = translation.candidates[0]
    example = replace(one.example, target=np.array(best.pieces, dtype=np.int32))
    [forced] = force(translator.model, collate([example]), attention=True)
    heads = [weights for (layer, _), weights in forced.cross.items() if layer == 1]
    cross = sum(heads) / len(heads)
    owners, pairs = [], []
    for spans, text in (
        (piece_spans(best.pieces, translator.target), best.text),
        (one.spans, line),
    ):
        words = whitespace_words(text).tolist()
        owners.append(
            [
                next((w for w, (_, end) in enumerate(words) if end > s), len(words) - 1)
                for s, _ in spans
            ]
        )
    for target in range(len(whitespace_words(best.text))):
        rows = [t for t, word in enumerate(owners[0]) if word == target]
        weights = [0.0] * len(whitespace_words(line))
        for row in rows:
            for column, word in enumerate(owners[1]):
                weights[word] += cross[row, column] / len(rows)
        if rows and max(weights) > 0:
            pairs.append((weights.index(max(weights)), target))
    return pairs


def test_alignments_equal_those_computed_by_loops(runs):
    translator = Translator.load(runs["plain"], alignment=True)
    translations = list(translator.translate(LINES))
    for line, translation in zip(LINES, translations, strict=True):
        if not line:
            assert translation.alignment is None
            continue
        alignment = translation.alignment
        assert alignment.pairs == slow_alignment(translator, line, translation) != []
        assert np.array_equal(alignment.source_words, whitespace_words(line))
        assert np.array_equal(alignment.target_words, whitespace_words(translation.text))


def test_an_lstm_and_an_ensemble_align_too(runs):
    for first, others in (("lstm", []), ("plain", ["lstm"])):
        translator = Translator.load(runs[first], *(runs[n] for n in others), alignment=True)
        assert all(t.alignment.pairs for t in translator.translate(TEXT))


def test_a_counterfactual_translation_is_the_translation_under_the_other_tree(runs):
    translator = Translator.load(runs["pascal"])
    requests = [Request(line, other_tree=flat_parse(line)) for line in LINES]
    compared = translate_counterfactually(translator, requests)
    own, flat = (
        list(translator.translate(LINES)),
        list(translator.translate(LINES, map(flat_parse, LINES))),
    )
    assert [one.own.text for one in compared] == [one.text for one in own]
    assert [one.other.text for one in compared] == [one.text for one in flat]
    under_flat = translator.batches(LINES, [[flat_parse(line) for line in LINES]])
    again = rescore(translator.models, under_flat, own)
    for index, one in enumerate(compared):
        expected = (
            again[index].log_probability - own[index].candidates[0].log_probability
            if index in again
            else 0.0
        )
        assert one.difference == pytest.approx(expected, abs=1e-4)
    assert compared[3].difference == 0
    assert any(one.changed for one in compared)


def test_the_own_tree_as_the_other_tree_changes_nothing(runs):
    translator = Translator.load(runs["pascal"])
    trees = translator.trees(LINES)
    requests = [Request(line, other_tree=tree) for line, tree in zip(LINES, trees, strict=True)]
    compared = translate_counterfactually(translator, requests)
    assert not any(one.changed for one in compared)
    assert [one.difference for one in compared] == pytest.approx([0] * len(LINES), abs=1e-3)


def test_a_tree_without_probabilities_is_certain_for_a_model_that_reads_them(tmp_path):
    translator = Translator.load(make_run(tmp_path / "labelled", LABELLED))
    [compared] = translate_counterfactually(
        translator, [Request(TEXT[0], other_tree=flat_parse(TEXT[0]))]
    )
    assert compared.other.text


def test_a_model_that_reads_no_trees_refuses_other_trees(runs):
    with pytest.raises(UsageError, match="reads no trees"):
        check_override(Translator.load(runs["plain"]))


def test_unknown_pieces_are_reported_with_their_characters(runs):
    vocabulary = Words(["A", "dog"])
    source = segment(0, "A цат sees dog", None, vocabulary, 512)
    assert source.example.source.tolist() == [4, UNK, UNK, 5]
    assert source.unknown == ("цат", "sees")
    plain = Translator.load(runs["plain"])
    assert next(iter(plain.translate(["A цат 🙈"]))).unknown == ()


def test_a_translation_at_its_length_limit_is_degenerate(runs):
    translator = Translator.load(runs["plain"])
    with torch.no_grad():
        # EOS is never the best
        translator.model.output_weight[3].zero_()
    for translation in translator.translate(TEXT):
        assert translation.degenerate in ("loop", "limit")
