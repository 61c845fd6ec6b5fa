"""Compared systems as text for a terminal, as tables and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from synmt.analysis.compare.sentences import ComparedSentence, ComparedSystem, ComparedSystems
from synmt.analysis.compare.word_difference import bracketed, classify_all
from synmt.analysis.compare.words import WordDetails
from synmt.analysis.report import TextTable
from synmt.evaluation.outputs import the_test_set


def to_json(compared: ComparedSystems, details: WordDetails) -> dict[str, Any]:
    """Return all numbers and sentences as plain values; two systems have the names `a` and `b`, too."""
    values: dict[str, Any] = {
        "systems": [_system_json(one) for one in compared.systems],
        "test": compared.test or None,
        "metric": compared.metric.title,
        "signature": compared.metric.signature,
        "higher_is_better": compared.metric.higher_is_better,
        "ranked_by": compared.ranking.title,
        "ranking_signature": compared.ranking.signature,
        "parser": details.parser or None,
        "sentences": [_sentence_json(one) | details.as_json(one.line) for one in compared.sentences],
    }
    if len(compared.systems) == 2:
        a, b = compared.systems
        assert b.difference is not None
        values |= {"a": a.name, "b": b.name, "score_a": a.score, "score_b": b.score}
        values |= {"difference": asdict(b.difference), "wins": b.wins, "ties": b.ties, "losses": b.losses}
    return values


def _system_json(one: ComparedSystem) -> dict[str, Any]:
    values: dict[str, Any] = {"system": one.name, "score": one.score}
    names = ("lowest", "lower_quartile", "median", "upper_quartile", "highest")
    quantiles = np.quantile(one.sentences, (0, 0.25, 0.5, 0.75, 1)).tolist()
    values["sentence_scores"] = dict(zip(names, quantiles, strict=True))
    if one.difference is None:
        return values
    return values | {
        "difference": asdict(one.difference),
        "holm_p": one.holm_p,
        **{"wins": one.wins, "ties": one.ties, "losses": one.losses},
    }


def _sentence_json(one: ComparedSentence) -> dict[str, Any]:
    values = asdict(one) | {"translations": list(one.translations), "scores": list(one.scores)}
    if len(one.scores) == 2:
        values |= {"a": one.translations[0], "b": one.translations[1]}
        values |= {"score_a": one.scores[0], "score_b": one.scores[1]}
    return values


def to_text(compared: ComparedSystems) -> Iterator[str | TextTable]:
    """Yield the systems, their scores, the sentences and the legend."""
    if compared.test:
        yield f"translations of {the_test_set(compared.test)}"
    named = zip(compared.letters, compared.systems, strict=True)
    yield "\n".join(f"{letter}: {one.name}" for letter, one in named) + "\n"
    yield from _pair_lines(compared) if len(compared.systems) == 2 else [systems_table(compared), *_legend(compared)]
    for heading, sentences in zip(headings(compared.letters), (compared.gaining, compared.losing), strict=True):
        if sentences:
            yield f"\n{heading}, by {compared.ranking.title}"
        for one in sentences:
            yield from ("", *_sentence_lines(one, compared.letters))
    yield f"\n[…]: {marks(compared)}"
    metrics = {f"{one.title}|{one.signature}": one for one in (compared.metric, compared.ranking)}
    for name, metric in metrics.items():
        yield name + ("" if metric.higher_is_better else "; lower is better")


def headings(names: Sequence[str]) -> tuple[str, str]:
    """Write the headings of the sentences with the largest gains and of those with the largest losses."""
    first = names[0]
    if len(names) == 2:
        gain, loss = f"{names[1]} gains most over {first}", f"{names[1]} loses most against {first}"
    else:
        gain = f"the others gain most over {first} on average"
        loss = f"the others lose most against {first} on average"
    return f"Sentences where {gain}", f"Sentences where {loss}"


def marks(compared: ComparedSystems) -> str:
    """Say which words of the translations are marked."""
    if len(compared.systems) == 2:
        return "words that the other translation does not have"
    return "in A, words that no other translation has; in the others, words that A does not have"


def _pair_lines(compared: ComparedSystems) -> Iterator[str]:
    a, b = compared.systems
    found = b.difference
    assert found is not None
    yield (
        f"{compared.metric.title}: {a.score:.2f} → {b.score:.2f}, {found.difference:+.2f} "
        f"({found.interval}, p = {found.p_value:.3f})"
    )
    counts = f"is better in {b.wins:,}, equal in {b.ties:,}, worse in {b.losses:,}"
    yield f"{compared.ranking.title} of single sentences: B {counts}"


def systems_table(compared: ComparedSystems) -> TextTable:
    """Write a line for each system: score, difference from the first, and in how many sentences it is better."""
    columns = ["system", compared.metric.title, "difference", "95 % interval", "p (Holm)", "better", "equal", "worse"]
    rows = []
    for letter, one in zip(compared.letters, compared.systems, strict=True):
        cells = [""] * 6
        if one.difference:
            difference = [f"{one.difference.difference:+.2f}", one.difference.interval, f"{one.holm_p:.3f}"]
            cells = [*difference, f"{one.wins:,}", f"{one.ties:,}", f"{one.losses:,}"]
        rows.append([f"{letter}: {one.name}", f"{one.score:.2f}", *cells])
    return TextTable(columns, rows)


def _legend(compared: ComparedSystems) -> Iterator[str]:
    first = compared.systems[0].name
    yield (
        f"difference from {first}; interval and p: paired bootstrap (Koehn, 2004), p corrected for the number of "
        "systems (Holm); intervals are not corrected"
    )
    yield f"better, equal, worse: in how many sentences, by {compared.ranking.title}"


def _sentence_lines(one: ComparedSentence, letters: list[str]) -> Iterator[str]:
    if len(letters) == 2:
        yield f"line {one.line:,}   {one.scores[0]:.1f} → {one.scores[1]:.1f}   {one.gain:+.1f}"
    else:
        scores = "   ".join(f"{letter} {score:.1f}" for letter, score in zip(letters, one.scores, strict=True))
        yield f"line {one.line:,}   {scores}   {one.gain:+.1f}"
    if one.source:
        yield f"  source     {one.source}"
    yield f"  reference  {one.reference}"
    kinds = classify_all(one.translations, one.reference)
    for letter, line, own in zip(letters, one.translations, kinds, strict=True):
        yield f"  {letter}          {bracketed(line, own)}"


def to_tables(compared: ComparedSystems) -> Iterator[str | TextTable]:
    """Yield the systems as one table and the sentences as another, with a row for each translation."""
    yield systems_table(compared)
    yield from _legend(compared)
    columns = ["line", "gain", "source", "reference", "system", compared.ranking.title, "translation"]
    rows = [
        [str(one.line), f"{one.gain:+.1f}", one.source, one.reference, system.name, f"{score:.1f}", translation]
        for one in compared.sentences
        for system, score, translation in zip(compared.systems, one.scores, one.translations, strict=True)
    ]
    yield TextTable(columns, rows, shared=4)
