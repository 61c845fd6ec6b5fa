"""Texts are cut into sentences, and come back with their whitespace."""

import random

import pytest
from cases import cases

from synmt.serve.texts import rejoin, sentences

CUT = """
A dog sleeps. The cat eats.|A dog sleeps.|The cat eats.
Dr. Smith sees No. 5 of Mr. J. R. Ewing.|Dr. Smith sees No. 5 of Mr. J. R. Ewing.
"Stop!" he said. "Why?" She left.|"Stop!" he said.|"Why?"|She left.
Really?! Yes … No.|Really?!|Yes …|No.
It costs 3.5 m. and more. Ok.|It costs 3.5 m. and more.|Ok.
これは本です。猫が寝る。|これは本です。|猫が寝る。
Вот дом. Это кот.|Вот дом.|Это кот.
see e.g. Paris or U.S. Steel.|see e.g. Paris or U.S. Steel.
"""


@pytest.mark.parametrize("parts", cases(CUT, "|"))
def test_sentences_end_where_people_end_them(parts):
    text, *expected = parts
    assert [sentence for sentence, _ in sentences(text)] == expected


def test_nothing_is_lost_whatever_the_text():
    random.seed(1)
    for _ in range(500):
        text = "".join(random.choices("aB .!?。\n\r\t\u2028\"'”5é", k=random.randrange(40)))
        parts = sentences(text)
        assert "".join(map("".join, parts)) == text
        assert all("\n" not in sentence for sentence, _ in parts)


def test_translations_stand_where_the_sentences_were():
    text = "One. Two.\n\n  Three.\n"
    parts = sentences(text)
    assert rejoin(parts, [sentence for sentence, _ in parts]) == text
    assert rejoin(sentences("猫。犬。"), ["A cat.", "A dog."]) == "A cat. A dog."
    assert rejoin(sentences("猫。犬。"), ["猫。", "犬。"]) == "猫。犬。"
    assert rejoin([], []) == ""
