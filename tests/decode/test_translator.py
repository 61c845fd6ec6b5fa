"""Lines in, lines out: order, blank lines, long lines, trees, and how text is read."""

import io
import itertools
from dataclasses import replace

import pytest
import torch
from small import random_batch, small_model
from small_run import LSTM, PASCAL, TEXT, make_run

from synmt.data.vocabulary import SPECIALS, Vocabulary, Words
from synmt.decode.batch_translation import translate_batches
from synmt.decode.inputs import batches, windows
from synmt.decode.translator import Translator
from synmt.decode.tree_provider import parser_difference
from synmt.errors import SynmtError, UsageError
from synmt.files.reading import read_available_lines
from synmt.recipe.schema import DecodingRecipe
from synmt.run_folder import Run
from synmt.syntax.controls import Control
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey

LINES = [*TEXT[:3], "", "   ", "A dog.", "\u2028", "The monkey \x07 sees 🙈 שלום.", "\t", TEXT[1]]


@pytest.fixture(scope="module", params=["transformer", "lstm"])
def plain(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "plain"
    if request.param == "lstm":
        return make_run(folder, {"name": "latent_tree"}, parser=False, model=LSTM)
    return make_run(folder, parser=False)


@pytest.fixture(scope="module")
def pascal(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "pascal", PASCAL)


def texts(translations):
    return [translation.text for translation in translations]


def test_each_line_gets_one_translation_in_order(plain):
    translations = list(Translator.load(plain).translate(LINES))
    assert [translation.line for translation in translations] == list(range(1, len(LINES) + 1))
    filled = [bool(translation.candidates) for translation in translations]
    assert filled == [bool(line.strip()) for line in LINES]
    assert all("\n" not in translation.text for translation in translations)
    assert translations[1].text == translations[-1].text
    assert len({translation.text for translation in translations}) > 4


def test_a_run_is_named_by_its_folder_as_text_or_path_and_several_are_an_ensemble(plain):
    expected = texts(Translator.load(plain).translate(LINES))
    assert texts(Translator.load(str(plain.folder)).translate(LINES)) == expected
    both = Translator.load(plain.folder, plain, device="cpu", n_best=2)
    assert len(both.models) == 2
    assert texts(both.translate(LINES)) == expected


def test_one_text_is_no_list_of_lines_and_options_have_known_names(plain):
    with pytest.raises(
        UsageError, match=r"lines: must be a list of texts, not one text. Write \['A dog'\]"
    ):
        next(Translator.load(plain).translate("A dog"))
    with pytest.raises(
        UsageError, match=r"there is no option 'beam_sise'.* Did you mean 'beam_size'\?"
    ):
        Translator.load(plain, beam_sise=4)


def test_a_run_is_read_once(plain, monkeypatch):
    calls = []
    for owner, name in ((Vocabulary, "load"), (Run, "recipe")):
        read = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *args, read=read, name=name: calls.append(name) or read(*args)
        )
    Translator.load(plain)
    assert sorted(calls) == ["load", "load", "recipe"]


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_the_batch_size_changes_no_translation(plain, batch_size):
    expected = list(Translator.load(plain, n_best=3).translate(LINES))
    found = list(Translator.load(plain, n_best=3, batch_size=batch_size).translate(LINES))
    for one, other in zip(found, expected, strict=True):
        assert [c.text for c in one.candidates] == [c.text for c in other.candidates]
        assert [c.score for c in one.candidates] == pytest.approx(
            [c.score for c in other.candidates], abs=1e-4
        )


def test_candidates_come_best_first(plain):
    for translation in Translator.load(plain, n_best=4).translate(TEXT):
        scores = [candidate.score for candidate in translation.candidates]
        assert len(scores) == 4
        assert scores == sorted(scores, reverse=True)


def test_more_candidates_than_beams_are_refused(plain):
    with pytest.raises(UsageError, match="a beam of 2 cannot give 3 translations"):
        Translator.load(plain, beam_size=2, n_best=3)


def test_a_window_is_translated_before_the_next_one_is_read(plain):
    translator = Translator.load(plain)
    read = []

    def taken():
        for number in range(3):
            read.append(number)
            yield [TEXT[number]]

    first = next(iter(translator.translate_windows(taken())))
    assert len(first) == 1
    assert read == [0]


def test_a_long_line_is_translated_in_part_and_counts_what_is_dropped(plain):
    translator = Translator.load(plain)
    line = " ".join(["monkey"] * 5000)
    translator.max_pieces = len(translator.source.encode_ids("monkey monkey"))
    [long, short, exact] = translator.translate([line, "A dog.", "monkey monkey"])
    assert long.dropped == len(translator.source.encode_ids(line)) - translator.max_pieces > 4000
    assert (short.dropped, exact.dropped) == (0, 0)
    assert long.text == exact.text != ""


def test_lines_are_parsed_or_given_trees_are_used(pascal):
    translator = Translator.load(pascal)
    parsed = list(translator.translate(LINES))
    assert texts(Translator.load(pascal).translate(LINES, translator.parser.parse(LINES))) == texts(
        parsed
    )
    # other trees, other translations
    flat = texts(Translator.load(pascal).translate(LINES, map(flat_parse, LINES)))
    assert flat != texts(parsed)
    assert [bool(text) for text in flat] == [bool(text) for text in texts(parsed)]


@pytest.mark.parametrize("max_pieces", [1, 4, 9])
def test_the_tree_of_a_truncated_line_is_truncated_with_it(tmp_path, max_pieces):
    run = make_run(tmp_path / "cut", PASCAL, max_pieces=max_pieces)
    assert all(texts(Translator.load(run).translate(TEXT, map(flat_parse, TEXT))))


@pytest.mark.parametrize(
    ("trees", "message"), [(2, "there are 2 trees, and more"), (4, "more trees than lines")]
)
def test_there_must_be_one_tree_per_line(pascal, trees, message):
    parses = [flat_parse(line) for line in TEXT[:trees]]
    with pytest.raises(SynmtError, match=message):
        list(Translator.load(pascal).translate(TEXT[:3], parses))


def test_another_control_reaches_everything_that_reads_trees(pascal):
    translator = Translator.load(pascal)
    trees = translator.parser.parse(LINES)
    chains = [Control("left").apply(tree, b"") for tree in trees]
    controlled = translator.with_control(Control("left"))
    parsed = texts(controlled.translate(LINES))
    assert (
        parsed
        == texts(controlled.translate(LINES, trees))
        == texts(translator.translate(LINES, chains))
    )
    assert parsed != texts(translator.translate(LINES))
    # the models that parse are those that translate
    assert [model.reading.control.kind for model in controlled.models] == ["left"]
    assert translator.reading.control.kind == "none"


def test_a_run_without_a_recorded_parser_needs_trees(tmp_path):
    run = make_run(tmp_path / "unnamed", PASCAL, parser=False)
    with pytest.raises(SynmtError, match=r"does not say which parser makes them.*--parses"):
        list(Translator.load(run).translate(TEXT))
    assert all(texts(Translator.load(run).translate(TEXT, map(flat_parse, TEXT))))


def test_another_parser_than_the_training_one_is_warned_of_once(tmp_path, caplog):
    run = make_run(tmp_path / "other", PASCAL)
    run.write_info(parser={**run.info()["parser"], "stanza": "0.9"})
    translator = Translator.load(run, batch_size=1)
    list(translator.translate(TEXT * 3))
    [warning] = [message for message in caplog.messages if "trained with" in message]
    assert "not the one that the model was trained with: stanza" in warning
    assert "instead of 0.9" in warning


def test_the_same_parser_in_another_folder_is_the_same():
    recorded = {"model": "compact", "language": "en", "files": {"a.pt": "1"}}
    assert parser_difference(recorded, {**recorded, "model": "/elsewhere"}) == ""
    assert parser_difference(recorded, {**recorded, "files": {}}) == "other model files (a.pt)"


def test_broken_weights_give_an_error_instead_of_translations(plain):
    translator = Translator.load(plain)
    with torch.no_grad():
        translator.model.output_weight[7] = float("nan")
    [loaded] = translator.models
    translator = Translator([replace(loaded, decoder=loaded.model.predictor())])
    with pytest.raises(SynmtError, match="no finite probabilities"):
        list(translator.translate(TEXT))


def test_the_number_of_batches_at_once_changes_no_translation(plain):
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(texts(Translator.load(plain, batch_size=2).translate(TEXT * 3)))
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_in_lower_precisions_every_line_is_translated(precision, plain):
    translator = Translator.load(plain, precision=precision)
    assert len(texts(translator.translate(TEXT))) == len(TEXT)


def test_batches_are_translated_in_the_order_of_their_lines():
    model = small_model().train()
    _, batch = random_batch(model, [3, 9, 1, 5])
    words = Words([f"w{number}" for number in range(40 - len(SPECIALS))])
    settings = DecodingRecipe(beam_size=2)
    ordered = translate_batches(model, [batch], settings, words)
    shuffled = replace(batch, lines=(7, 3, 5, 1))
    found = translate_batches(model, [shuffled], settings, words)
    assert model.training
    assert found == [ordered[3], ordered[1], ordered[2], ordered[0]]
    assert all(text.split()[0].startswith("w") for text in found)


@pytest.mark.parametrize(("byte", "character"), [("<0x0A>", "\n"), ("<0x0D>", "\r")])
def test_the_end_of_a_line_spelt_in_bytes_does_not_end_a_line(plain, monkeypatch, byte, character):
    translator = Translator.load(plain)
    end = next(n for n in range(len(translator.target)) if translator.target.pieces([n]) == [byte])
    decode = translator.target.decode
    assert decode([end]) == character
    monkeypatch.setattr(translator.target, "decode", lambda ids: decode([*ids, end, *ids]))
    [translation] = translator.translate([TEXT[0]])
    assert " " in translation.text
    assert character not in translation.text


class Slow(io.RawIOBase):
    """A pipe that holds one chunk at a time."""

    def __init__(self, chunks):
        self.chunks = list(chunks)

    def readable(self):
        return True

    def readinto(self, buffer):
        chunk = self.chunks.pop(0) if self.chunks else b""
        buffer[: len(chunk)] = chunk
        return len(chunk)


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
    stream = io.BufferedReader(Slow(chunks))
    assert list(read_available_lines(stream, 3, where="pipe")) == expected


def test_windows_hold_every_line():
    assert list(windows("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]


def test_batches_have_similar_lengths_and_at_most_the_allowed_size():
    lengths = [3, 9, 1, 7, 50, 2, 8]
    made = list(batches(lengths, int, sentences=3, pieces=20))
    assert made == [[50], [9, 8], [7, 3], [2, 1]]
    assert sorted(itertools.chain(*made)) == sorted(lengths)
