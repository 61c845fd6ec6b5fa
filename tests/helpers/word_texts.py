"""Three sentences with two translations, whose words compare-mt 0.2.10 has counted."""

from synmt.analysis.words.texts import WordTexts
from synmt.evaluation.metrics import MetricOptions
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.systems import System

REFERENCE = [
    "der Hund sieht den Hund",
    "ein Mann sieht die Frau",
    "die Frau schläft und der Mann lacht",
]


A = ["der Hund sieht Hund Hund", "die Frau sieht ein Mann", "der Mann schläft und lacht lacht"]


B = ["den Hund sieht der Hund", "ein Mann und die Frau", "die Frau schläft"]


SOURCE = ["the dog sees the dog", "a man sees the woman", "the woman sleeps and the man laughs"]


# the fifth word of the last sentence, "the", is not aligned
PAIRS = [
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)],
    [(0, 0), (1, 1), (2, 2), (4, 4), (3, 3)],
    [(0, 0), (1, 1), (2, 2), (3, 3), (5, 5), (6, 6), (5, 4)],
]


def texts_of(references, *systems, source=()):
    """Read the words of a test set that systems translated."""
    outputs = [
        Outputs(name, "", list(source), references, lines)
        for name, lines in zip("abc", systems, strict=False)
    ]
    return WordTexts([System(one.system, [one]) for one in outputs], MetricOptions(tokenize="none"))


def random_lines(random, sentences, words=8):
    return [
        " ".join(random.choice(list("abcdef"), random.integers(0, words))) for _ in range(sentences)
    ]
