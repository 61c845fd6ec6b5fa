"""Random systems with scores of random sentences, and random trees, for tests of groups."""

import numpy as np
from notation import tree
from walks import way_up

from synmt.analysis.groups.grouping import by_label
from synmt.analysis.groups.results import SentenceScores
from synmt.evaluation.metrics import MetricOptions, make_metric, score
from synmt.syntax.trees import random_tree

METRIC = make_metric("bleu")
REFERENCES = ["Der Affe isst eine Banane.", "Er schläft heute lange.", "Ja."]
FIRST = ["Der Affe isst die Banane.", "Er schläft lange.", "Nein."]
SECOND = ["Der Affe isst eine Banane.", "Er schläft heute.", "Ja."]


WORDS = ["der", "die", "das", "Affe", "Frau", "isst", "sieht", "Banane", "Mann"]


def labelled(name, values):
    return by_label(name, values, np.ones(len(values), dtype=np.int64))


def random_parses(seed, sentences=40):
    random = np.random.default_rng(seed)
    names = np.array(["nsubj", "nsubj:pass", "obj", "punct", "acl:relcl"])
    sizes = random.integers(0, 12, size=sentences)
    return [
        tree(random_tree(int(size), random), random.choice(names, size).tolist()) for size in sizes
    ]


def walk(parse, word):
    """Walk from a word to the root; gives the steps, and the words without punctuation on the way
    to its parent."""
    low, high = sorted((word, int(parse.parents[word])))
    passed = sum(relation != "punct" for relation in parse.relations[low + 1 : high + 1])
    return len(way_up(parse.parents, word)) - 1, passed


def some_systems(seeds, sentences=24):
    """Translate random references with random errors: for each system, a score of each seed."""
    random = np.random.default_rng(7)
    references = random.choice(WORDS, size=(sentences, 7))
    texts = [" ".join(line) for line in references]

    def translate(share):
        wrong = random.random((sentences, 7)) < share
        lines = np.where(wrong, random.choice(WORDS, size=(sentences, 7)), references)
        return SentenceScores(
            score(METRIC, [" ".join(line) for line in lines], texts), np.zeros(sentences, bool)
        )

    shares = np.linspace(0.5, 0.1, len(seeds))
    return {
        f"s{number}": [translate(share) for _ in range(count)]
        for number, (share, count) in enumerate(zip(shares, seeds, strict=True))
    }


def halves(few=0):
    return labelled("half", ["a"] * (12 - few) + ["b"] * (12 + few))


def score_system(
    hypotheses, references, metrics=("bleu",), *, sources=None, tokenize="13a", lowercase=False
):
    """Score the translations of a system by each metric."""
    options = MetricOptions(tokenize, lowercase)
    return {
        name: score(make_metric(name, options), hypotheses, references, sources) for name in metrics
    }
