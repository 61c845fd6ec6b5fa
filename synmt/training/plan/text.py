"""The text of a recipe: which steps are done, and what would be downloaded and built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from synmt.corpora.corpus import Corpus
from synmt.corpora.download import bytes_to_fetch, is_there, local_path, no_network
from synmt.corpora.needs import CorpusNeeds, corpus_needs, find_corpus
from synmt.errors import SynmtError, all_in_one
from synmt.files.reading import offline
from synmt.recipe.schema import Recipe
from synmt.training.plan.step import PlannedStep, State


@dataclass(frozen=True)
class PlannedText:
    """The text of a recipe.

    corpus: None as long as a file is missing.
    valid: the name of the split that is the validation text.
    counts: lines of each split, as far as they are known without the text.
    """

    corpus: Corpus | None = None
    steps: list[PlannedStep] = field(default_factory=list)
    valid: str = "valid"
    counts: Mapping[str, int] = field(default_factory=dict)


def plan_text(recipe: Recipe) -> PlannedText:
    """Find the text of a recipe, or plan what makes it."""
    where = (recipe.corpus, recipe.source, recipe.target)
    try:
        if corpus := find_corpus(*where):
            return PlannedText(corpus, [PlannedStep(f"find the text: {corpus.train.source.parent}", "done")])
        needs = corpus_needs(*where)
    except SynmtError as error:
        return PlannedText(steps=[PlannedStep("find the text", "missing", problem=error)])
    pairs = needs.counts.get("train")
    amount = f"about {pairs:,} pairs to train on" if pairs else ""
    problem = all_in_one(list(needs.problems)) if needs.problems else None
    state: State = "missing" if problem else "to do"
    build = PlannedStep(f"build the text: {needs.folder}", state, amount, problem=problem)
    return PlannedText(None, [*_downloads(needs), build], needs.valid, needs.counts)


def _downloads(needs: CorpusNeeds) -> Iterator[PlannedStep]:
    silent = set[str]()
    missing = [file for file in needs.downloads if not is_there(file)]
    for file in needs.downloads:
        what, host = f"download {file.address}", urlsplit(file.address).netloc
        if is_there(file):
            yield PlannedStep(what, "done", _bytes(local_path(file).stat().st_size))
        elif offline():
            yield PlannedStep(what, "missing", _bytes(file.size or None), problem=no_network(missing))
        else:
            # a server that did not answer once is not asked again
            size = bytes_to_fetch(file) if file.size or host not in silent else None
            silent |= {host} if size is None else set()
            yield PlannedStep(what, "to do", _bytes(size))


def _bytes(size: int | None) -> str:
    if size is None:
        return "size unknown"
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
