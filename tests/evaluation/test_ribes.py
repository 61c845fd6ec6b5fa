"""RIBES against its definition, searched word by word; the values of the authors' script, version
1.03."""

import random
from itertools import combinations
from math import exp

import pytest
from scored import score_system

from synmt.evaluation.ribes import align, sentence_ribes

pytestmark = pytest.mark.journey


def ribes_of(hypothesis, reference):
    return score_system([hypothesis], [reference], ["ribes"])["ribes"].value


@pytest.mark.parametrize(
    ("hypothesis", "reference", "expected"),
    [
        ("ja", "ja", 100),
        # a reference of one word asks for no order: P = 1/2, and a longer translation is not
        # punished
        ("ja ja", "ja", 0),
        ("ach ja", "ja", 100 * 0.5**0.25),
        # one word of two has no order
        ("ja", "ja ja", 0),
        ("ja", "ach ja", 0),
        ("nein", "ja", 0),
        # an empty line is one empty word
        ("", "", 100),
        ("  \t ", "\u3000", 100),
        ("", "ja", 0),
        ("ja", "", 0),
    ],
)
def test_texts_without_an_order(hypothesis, reference, expected):
    assert ribes_of(hypothesis, reference) == pytest.approx(expected)


def test_case_and_the_width_of_spaces_do_not_matter():
    assert ribes_of("Der  Affe\tISST ", "der affe\u00a0isst") == 100


def occurrences(words, ngram):
    """Find the places of an n-gram, overlapping ones too."""
    return [k for k in range(len(words)) if words[k : k + len(ngram)] == ngram]


def searched(hypothesis, reference):
    """Align by trying contexts of growing length, as the definition tells it."""
    positions = []
    for i in range(len(hypothesis)):
        for size in range(1, len(hypothesis) + 1):
            unique = []
            # ends at the word, then begins there; where each is one word, both are the word itself
            for start in (i - size + 1, i):
                context = hypothesis[max(start, 0) : start + size]
                places = occurrences(reference, context)
                if len(context) == size and len(occurrences(hypothesis, context)) == 1:
                    unique += [place + i - start for place in places if len(places) == 1]
            if unique:
                positions.append(unique[0])
                break
    return positions


def searched_score(hypothesis, reference):
    positions = searched(hypothesis, reference)
    count, length_ratio = len(positions), len(reference) / len(hypothesis)
    pairs = list(combinations(positions, 2))
    order = sum(one < other for one, other in pairs) / len(pairs) if pairs else 0
    order = order if count != 1 else len(reference) == 1
    return order * (count / len(hypothesis)) ** 0.25 * min(1.0, exp(1 - length_ratio)) ** 0.1


@pytest.mark.parametrize("kinds", [1, 2, 3, 8, 30])
def test_random_texts_are_aligned_as_by_a_search(kinds):
    draw = random.Random(kinds)
    words = [str(kind) for kind in range(kinds)]
    for _ in range(150):
        hypothesis, reference = (draw.choices(words, k=draw.randint(1, 14)) for _ in range(2))
        if draw.random() < 0.5:
            cut = draw.randint(0, len(reference))
            hypothesis = reference[cut:] + reference[:cut] + hypothesis[: draw.randint(0, 2)]
        assert align(hypothesis, reference) == searched(hypothesis, reference)
        expected = searched_score(hypothesis, reference)
        assert sentence_ribes(hypothesis, reference) == pytest.approx(expected, abs=1e-12)


def test_a_long_line_of_one_word_is_scored_too():
    # contexts of 300 words at 300 places: a search would need minutes
    assert ribes_of("a " * 300, "a " * 300) == pytest.approx(100 * (2 / 300) ** 0.25)
