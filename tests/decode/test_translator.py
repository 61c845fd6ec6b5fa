"""Lines in, lines out: order, blank and long lines, trees, ensembles, prefixes, alignments, and how
text is read."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from refusing import assert_fails, assert_refused
from small import random_batch, small_model
from small_run import LSTM, PASCAL, TEXT, make_run

from synmt.data.vocabulary import SPECIALS, UNK, Words
from synmt.decode.alignment import best_pairs, whitespace_words, word_weights
from synmt.decode.forced import ForcedDecoding, force, rescore, with_parts
from synmt.decode.inputs import Request, batches, segment, windows, zip_windows
from synmt.decode.options import Sampling
from synmt.decode.translation import Candidate, Translation, piece_spans
from synmt.decode.translator import Translator, translate_batches
from synmt.decode.tree_provider import parser_difference
from synmt.files.reading import read_available_lines
from synmt.parsing.parser import StanzaParser
from synmt.recipe.schema import DecodingRecipe
from synmt.run_folder import Run
from synmt.syntax.controls import Control
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey

ODD = [*TEXT[:3], "", "   ", "A dog.", "\u2028", "The monkey \x07 sees 🙈 שלום.", "\t", TEXT[1]]
LINES = [*TEXT[:3], "", "A dog."]
FLAT = [flat_parse(line) for line in LINES]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    latent = {"name": "latent_tree"}
    return {
        "plain": make_run(folder / "plain", parser=False),
        "lstm": make_run(folder / "lstm", latent, parser=False, model=LSTM),
        "pascal": make_run(folder / "pascal", PASCAL),
        "other": make_run(folder / "other", PASCAL, max_pieces=9),
    }


@pytest.fixture
def load(runs):
    return lambda *names, **options: Translator.load(*map(runs.get, names), **options)


def requests_of(lines, **trees):
    """Make requests of lines, with a tree for each."""
    [(name, given)] = trees.items() or [("tree", [None] * len(lines))]
    rows = enumerate(zip(lines, given, strict=True), start=1)
    return [Request(line, number, **{name: tree}) for number, (line, tree) in rows]


def texts(translations):
    return [translation.text for translation in translations]


def rounded(translations):
    return [[(one.text, round(one.score, 3)) for one in t.candidates] for t in translations]


def word_vocabulary(size):
    return Words([f"w{number}" for number in range(size - len(SPECIALS))])


@pytest.mark.parametrize("name", ["plain", "lstm"])
def test_each_line_gets_one_translation_in_order(load, name):
    translations = list(load(name).translate(ODD))
    assert [one.line for one in translations] == list(range(1, len(ODD) + 1))
    assert [bool(one.candidates) for one in translations] == [bool(line.strip()) for line in ODD]
    assert translations[1].text == translations[-1].text
    assert len(set(texts(translations))) > 4


def test_a_run_is_named_by_its_folder_as_text_or_path_and_options_have_known_names(runs):
    folder = runs["plain"].folder
    expected = texts(Translator.load(folder).translate(LINES))
    assert texts(Translator.load(str(folder), folder, n_best=2).translate(LINES)) == expected
    with pytest.raises(TypeError, match="beam_sise"):
        Translator.load(folder, beam_sise=4)
    assert_refused(
        r"lines: must be a list of texts", next, Translator.load(folder).translate("A dog")
    )


def test_a_long_line_is_translated_in_part_and_counts_what_is_dropped(load):
    translator, line = load("plain"), " ".join(["monkey"] * 5000)
    translator.max_pieces = len(translator.source.encode_ids("monkey monkey"))
    [long, short, exact] = translator.translate([line, "A dog.", "monkey monkey"])
    assert long.dropped == len(translator.source.encode_ids(line)) - translator.max_pieces > 4000
    assert (short.dropped, exact.dropped, long.text) == (0, 0, exact.text)


def test_lines_are_parsed_or_given_trees_are_used(load):
    translator = load("pascal")
    parsed, flat = (rounded(translator.translate(LINES, trees)) for trees in (None, FLAT))
    own = translator.trees(LINES)
    assert rounded(translator.translate(LINES, translator.parser.parse(LINES))) == parsed != flat
    given = [FLAT[0], None, None, None, FLAT[4]]
    assert translator.trees(LINES, given) == [given[0], *own[1:4], given[4]]
    requests = requests_of(LINES, tree=given)
    assert rounded(translator.translate_requests(requests)) == [flat[0], *parsed[1:4], flat[4]]


@pytest.mark.parametrize("max_pieces", [1, 4, 9])
def test_the_tree_of_a_truncated_line_is_truncated_with_it(tmp_path, max_pieces):
    run = make_run(tmp_path / "cut", PASCAL, max_pieces=max_pieces)
    assert all(texts(Translator.load(run).translate(TEXT, map(flat_parse, TEXT))))


def test_another_control_reaches_everything_that_reads_trees(load):
    translator = load("pascal")
    trees = translator.parser.parse(LINES)
    chains = [Control("left").apply(tree, b"") for tree in trees]
    controlled = translator.with_control(Control("left"))
    parsed = texts(controlled.translate(LINES))
    assert parsed == texts(controlled.translate(LINES, trees))
    assert parsed == texts(translator.translate(LINES, chains))
    assert parsed != texts(translator.translate(LINES))
    # the models that parse are those that translate
    assert [model.reading.control.kind for model in controlled.models] == ["left"]


def test_no_parser_is_loaded_where_none_is_needed_and_one_that_is_not_recorded_is_missed(
    load, tmp_path, monkeypatch
):
    unnamed = Translator.load(make_run(tmp_path / "unnamed", PASCAL, parser=False))
    assert_fails(r"does not say which parser makes them.*--parses", list, unnamed.translate(TEXT))
    monkeypatch.setattr("synmt.decode.tree_provider.recorded_parser", None)
    trees = [tree if line else None for line, tree in zip(LINES, FLAT, strict=True)]
    for translator in (unnamed, load("pascal")):
        found = texts(translator.translate([*LINES, " \t"], [*trees, None]))
        assert [bool(one) for one in found] == [*map(bool, LINES), False]


def test_an_ensemble_is_the_mean_of_its_members_in_any_order(load):
    alone, twice, one, other = (
        rounded(load(*names.split()).translate(LINES))
        for names in ("pascal", "pascal pascal", "plain lstm pascal", "lstm pascal plain")
    )
    assert twice == alone != one == other


def test_an_ensemble_parses_once_for_each_parser_and_takes_what_all_take(
    runs, load, monkeypatch, caplog
):
    parse = StanzaParser.parse
    counted = Mock(side_effect=lambda *given, **options: parse(*given, **options))
    monkeypatch.setattr(StanzaParser, "parse", lambda *given, **how: counted(*given, **how))
    options = {"parse_cache": False, "batch_size": 1}
    translator = load("pascal", "plain", "other", **options)
    assert translator.max_pieces == 9
    assert any(one.dropped for one in translator.translate(LINES))
    assert counted.call_count == 1
    first, none, third = translator._tree_provider.trees(LINES, [None] * len(LINES), 1)
    assert first is third
    assert none == [None] * len(LINES)
    other = Run(runs["other"].folder)
    recorded = other.info()["parser"]
    other.write_info(parser={**recorded, "stanza": "0.9"})
    translator = load("pascal", "other", **options)
    other.write_info(parser=recorded)
    first, second = translator._tree_provider.trees(LINES, [None] * len(LINES), 1)
    assert first is not second
    assert all(texts(translator.translate(TEXT)))
    # it is warned of once
    [warning] = [message for message in caplog.messages if "trained with" in message]
    assert "not the one that the model was trained with: stanza" in warning
    assert "instead of 0.9" in warning


def test_the_same_parser_in_another_folder_is_the_same():
    recorded = {"model": "compact", "language": "en", "files": {"a.pt": "1"}}
    assert parser_difference(recorded, {**recorded, "model": "/elsewhere"}) == ""
    assert parser_difference(recorded, {**recorded, "files": {}}) == "other model files"


def test_runs_with_different_vocabularies_cannot_form_an_ensemble(runs, tmp_path):
    other = make_run(tmp_path / "words", parser=False)
    (other.folder / "target.model").unlink()
    word_vocabulary(340).save(other.folder, "target")
    assert_refused("differ from those of", Translator.load, runs["plain"], other)


def test_broken_weights_give_an_error_instead_of_translations(load):
    translator = load("plain")
    with torch.no_grad():
        translator.model.output_weight[7] = float("nan")
    [loaded] = translator.models
    translator = Translator([replace(loaded, decoder=loaded.model.predictor())])
    assert_fails("no finite probabilities", list, translator.translate(TEXT))


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_in_lower_precisions_every_line_is_translated(precision, load):
    assert all(texts(load("plain", precision=precision).translate(TEXT)))


def test_a_wide_beam_takes_fewer_sentences_at_once(load, monkeypatch):
    translator = load("plain", beam_size=7)
    monkeypatch.setattr("synmt.decode.translator._LOGITS", 2 * 7 * len(translator.target) + 1)
    assert [len(part) for part in translator.source_batches(TEXT, [None] * len(TEXT))] == [2, 2, 2]
    assert all(texts(translator.translate(TEXT)))


def test_batches_are_translated_in_the_order_of_their_lines():
    model = small_model().train()
    _, batch = random_batch(model, [3, 9, 1, 5])
    found = [
        translate_batches(model, [one], DecodingRecipe(beam_size=2), word_vocabulary(40))
        for one in (batch, replace(batch, lines=(7, 3, 5, 1)))
    ]
    assert model.training
    assert found[1] == [found[0][place] for place in (3, 1, 2, 0)]
    assert all(text.startswith("w") for text in found[0])


def test_a_prefix_with_an_unknown_piece_names_its_line(load):
    translator = load("plain")
    translator.target = word_vocabulary(len(translator.target))
    assert_fails(
        r"line 8: .*has no piece for a part of the prefix",
        translator.translate_requests,
        [Request("A dog.", 8, "w1 x")],
    )


def test_samples_depend_on_the_number_of_the_line_and_on_nothing_else(load):
    options = {"n_best": 3, "sampling": Sampling(temperature=2.0, seed=4)}
    translator = load("plain", **options)
    whole = rounded(translator.translate(LINES))
    assert rounded(load("plain", **options, batch_size=1).translate(LINES)) == whole
    fifth, first = (translator.translate_requests([Request(LINES[4], n)]) for n in (5, 1))
    assert rounded(fifth) == whole[4:] != rounded(first)


@pytest.mark.parametrize("names", ["pascal", "pascal lstm"])
def test_rescoring_gives_the_log_probability_of_the_search(load, names):
    translator = load(*names.split())
    translations = list(translator.translate(LINES))
    again = rescore(translator.models, translator.read(requests_of(LINES)), translations)
    expected = {n: one.best.log_probability for n, one in enumerate(translations) if one.candidates}
    found = {source.index: forced.log_probabilities.sum() for source, forced in again}
    assert found == pytest.approx(expected, abs=1e-3)


def test_pieces_add_their_characters_and_the_last_byte_has_the_character(load):
    vocabulary = load("plain").target
    ids = tuple(vocabulary.encode_ids("A 🙈 dog."))
    text, spans = vocabulary.decode(ids), piece_spans(ids, vocabulary).tolist()
    parts = [text[start:end] for start, end in spans]
    assert "".join(parts) == text
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])]
    last = next(k for k, part in enumerate(parts) if "🙈" in part)
    assert "".join(vocabulary.pieces(ids[last - 3 : last + 1])) == "<0xF0><0x9F><0x99><0x88>"
    assert parts[last - 3 : last] == [""] * 3
    assert piece_spans((), vocabulary).shape == (0, 2)


def test_alignments_are_those_of_the_attention_of_forced_decoding(load):
    translator = load("plain", alignment=True)
    for line, translation in zip(LINES, translator.translate(LINES), strict=True):
        if not line:
            assert translation.alignment is None
            continue
        source, best = segment(0, line, None, translator.source, 512), translation.best
        memory = translator.models[0].encode([source])
        [forced] = force(translator.model, memory, [np.array(best.pieces)], attention=True)
        words = whitespace_words(line), whitespace_words(best.text)
        spans = piece_spans(best.pieces, translator.target), source.spans
        alignment = translation.alignment
        assert alignment.pairs == best_pairs(word_weights(forced.cross, *spans, *words)) != []
        assert alignment.source_words == words[0].tolist()
        assert alignment.target_words == words[1].tolist()


@pytest.mark.parametrize("names", ["lstm", "plain lstm"])
def test_an_lstm_and_an_ensemble_align_too(load, names):
    translator = load(*names.split(), alignment=True)
    found = list(translator.translate(TEXT))
    assert [bool(one.alignment.pairs) for one in found] == [bool(one.text.split()) for one in found]
    assert any(texts(found))


@pytest.mark.parametrize("names", ["plain", "plain lstm"])
def test_scores_of_pieces_and_words_add_up_to_those_of_translations(load, names):
    translator = load(*names.split(), word_scores=True)
    for line, translation in zip(LINES, translator.translate(LINES), strict=True):
        if not line:
            assert translation.parts is None
            continue
        best, parts = translation.best, translation.parts
        pieces = [piece for piece, _ in parts.pieces]
        assert pieces == [*translator.target.pieces(best.pieces), "</s>"]
        total = sum(score for _, score in parts.pieces)
        assert total == pytest.approx(best.log_probability, abs=1e-4)
        # spaces alone are no word
        if parts.words:
            assert sum(parts.words) + parts.pieces[-1][1] == pytest.approx(total)
        assert len(parts.words) == len(best.text.split())


def test_a_word_has_the_sum_of_its_pieces(load):
    target, text = load("plain").target, TEXT[-1]
    ids = tuple(target.encode_ids(text))
    logs = -np.arange(1.0, len(ids) + 2)
    translation = Translation(1, (Candidate(text, logs.sum(), logs.sum(), ids),))
    parts = with_parts(translation, ForcedDecoding(logs, np.zeros((0, 0))), target).parts
    sums = list[float]()
    for piece, log in zip(target.pieces(ids), logs, strict=False):
        if piece.startswith("▁"):
            sums.append(0.0)
        sums[-1] += log
    assert 2 < len(sums) < len(ids)
    assert parts.words == sums


def test_a_counterfactual_translation_is_the_translation_under_the_other_tree(load):
    translator = load("pascal")
    compared = translator.translate_requests(requests_of(LINES, other_tree=FLAT))
    own, flat = (list(translator.translate(LINES, trees)) for trees in (None, FLAT))
    assert texts(compared) == texts(own) != texts(flat)
    assert texts(one.other for one in compared) == texts(flat)
    under_flat = translator.read(requests_of(LINES, tree=FLAT))
    for source, again in rescore(translator.models, under_flat, own):
        expected = again.log_probabilities.sum() - own[source.index].best.log_probability
        assert compared[source.index].difference == pytest.approx(expected, abs=1e-4)
    assert compared[3].difference == 0


def test_a_tree_without_probabilities_is_certain_for_a_model_that_reads_them(tmp_path):
    labelled = {"name": "dependency_distribution", "heads": 1, "groups": [["nsubj"]]}
    translator = Translator.load(make_run(tmp_path / "labelled", labelled))
    [compared] = translator.translate_requests([Request(LINES[0], other_tree=FLAT[0])])
    assert compared.other.text


def test_unknown_pieces_are_counted(load):
    source = segment(0, "A цат sees dog", None, Words(["A", "dog"]), 512)
    assert source.example.source.tolist() == [4, UNK, UNK, 5]
    assert source.unknown == 2
    assert next(iter(load("plain").translate(["A цат 🙈"]))).unknown == 0


def test_a_translation_at_its_length_limit_is_degenerate(load):
    translator = load("plain")
    with torch.no_grad():
        # EOS is never the best
        translator.model.output_weight[3].zero_()
    assert {one.degenerate for one in translator.translate(TEXT)} <= {"loop", "limit"}


@pytest.mark.parametrize("byte", "\n\r")
def test_the_end_of_a_line_spelt_in_bytes_does_not_end_a_line(load, monkeypatch, byte):
    target = (translator := load("plain")).target
    decode = target.decode
    [end] = [n for n in range(len(target)) if decode([n]) == byte]
    monkeypatch.setattr(target, "decode", lambda ids: decode([*ids, end, *ids]))
    [translation] = translator.translate([TEXT[0]])
    assert " " in translation.text
    assert byte not in translation.text


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\nb\n", b"c\n"], [["a", "b"], ["c"]]),
        ([b"a\nb", b"b\nc"], [["a"], ["bb"], ["c"]]),
        ([b"1\n2\n3\n4\n5\n"], [["1", "2", "3"], ["4", "5"]]),
        ([b"\n\n", b"\xe2\x80", b"\xa8x\n"], [["", ""], ["\u2028x"]]),
        ([b"a\r\nb\r", b"\n\r\nc\r"], [["a"], ["b", ""], ["c"]]),
        ([], []),
    ],
)
def test_lines_are_read_as_they_arrive(chunks, expected):
    stream = Mock(read1=Mock(side_effect=[*chunks, b""]))
    assert list(read_available_lines(stream, 3, where="pipe")) == expected


def test_windows_hold_every_line_and_go_with_as_many_others():
    made = list(windows("abcde", 2))
    assert made == [["a", "b"], ["c", "d"], ["e"]]
    assert [others for _, others in zip_windows(made, range(5), "trees")] == [[0, 1], [2, 3], [4]]
    for count, message in (
        (4, "there are 4 trees, and more"),
        (6, "there are 5 lines of text, and more trees"),
    ):
        assert_fails(message, list, zip_windows(made, range(count), "trees"))


def test_batches_have_similar_lengths_and_at_most_the_allowed_size():
    made = list(batches([3, 9, 1, 7, 50, 2, 8], int, sentences=3, pieces=20))
    assert made == [[50], [9, 8], [7, 3], [2, 1]]
