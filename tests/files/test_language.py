"""A text in another language than its own gives one warning; mark-up and one file for both sides
are refused."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import environment, write_lines, write_recipe

from synmt.files.language import warn_of_file, watched
from synmt.training.pipeline import prepare

ENGLISH = [
    "The boy sees the dog in the garden.",
    "The old woman has given a book to her neighbour.",
] * 30
GERMAN = [
    "Der Junge sieht den Hund im Garten.",
    "Die alte Frau hat ihrem Nachbarn ein Buch gegeben.",
] * 30
DANISH = [
    "Drengen ser hunden i haven.",
    "Den gamle kvinde har givet sin nabo en bog om kongens historie.",
] * 30
CZECH = ["Chlapec vidí psa na zahradě.", "Stará žena dala svému sousedovi knihu o králi."] * 30
PORTUGUESE = [
    "O menino vê o cachorro no jardim.",
    "A velha senhora deu um livro ao seu vizinho.",
] * 30


def warnings_for(tmp_path, caplog, lines, language, **options):
    (tmp_path / "text.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    warn_of_file(tmp_path / "text.gz", language, **options)
    return [message.removeprefix(f"{tmp_path}/") for message in caplog.messages]


@pytest.mark.parametrize(
    ("lines", "language", "other", "warned"),
    [
        (GERMAN, "en", "", "60 of 60 sampled lines look like language 'de', not 'en'; is this"),
        (ENGLISH, "de", "en", "look like language 'en', not 'de'; are source and target swapped?"),
        (DANISH, "en", "nb", "look like language 'da', not 'en'; are source and target swapped?"),
        (GERMAN[:8], "zh-hans", "", "8 of 8 sampled lines look like language 'de', not 'zh'"),
        ([line.upper() for line in GERMAN], "en", "", "60 of 60"),
        (GERMAN * 20, "en", "", "200 of 200"),
    ],
)
def test_a_text_in_another_language_is_named_with_counts(
    tmp_path, caplog, lines, language, other, warned
):
    [message] = warnings_for(tmp_path, caplog, lines, language, other=other)
    assert message.startswith("text.gz: ")
    assert warned in message


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("de", GERMAN),
        ("nb", DANISH),
        ("sv", DANISH),
        ("sk", CZECH),
        ("gl", PORTUGUESE),
        ("xx", GERMAN),
        ("en", GERMAN[:1]),
        ("fr", GERMAN + ENGLISH),
        ("en", ["12 345", "...", "", "OK"] * 30),
    ],
)
def test_the_right_language_a_related_one_and_text_that_is_short_or_mixed_stay_quiet(
    tmp_path, caplog, lines, language
):
    assert warnings_for(tmp_path, caplog, lines, language) == []


def test_a_stream_is_passed_on_at_once_and_warned_of_once(caplog):
    text = GERMAN * 10
    lines = watched(iter(text), lambda line: [line], "en", where="standard input")
    for number, line in enumerate(lines):
        assert line == text[number]
        # the check comes after the 200th line, not before
        assert len(caplog.messages) == (number >= 200)
    assert caplog.messages[0].startswith("standard input: 200 of 200 sampled lines look like")


def test_a_sentence_is_judged_without_loading_the_detector():
    code = f"""
import sys
from synmt.files.language import watched
list(watched([{GERMAN[0]!r}], lambda line: [line], "en", where="text"))
assert "py3langid" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=environment(), timeout=60)


@pytest.mark.journey
def test_swapped_sides_are_named_once_when_a_corpus_is_prepared(tmp_path, caplog):
    for name in ("train", "valid"):
        write_lines(tmp_path / f"{name}.en", GERMAN)
        write_lines(tmp_path / f"{name}.de", ENGLISH)
    recipe = write_recipe(tmp_path / "recipe.yaml", tmp_path, parser={}, syntax={})
    for _ in range(2):
        list(prepare(recipe, data=tmp_path / "data"))
    said = [message for message in caplog.messages if "are source and target swapped?" in message]
    names = [Path(message.split(":")[0]).name for message in said]
    assert names == ["train.en", "train.de", "valid.en", "valid.de"]


def test_windows_are_watched(caplog):
    list(watched([GERMAN], list, "en", where="text"))
    assert caplog.messages[0].startswith(
        "text: 60 of 60 sampled lines look like language 'de', not"
    )
