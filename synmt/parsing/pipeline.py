"""Stanza's Pipeline: loaded once, run over batches of lines, and never seen from outside."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from synmt.parsing import models as stanza_models
from synmt.parsing.arcs import check_graph_parser, parse_with_arcs
from synmt.parsing.lines import LONGEST, cut, parses_of
from synmt.parsing.single_root import quick_search
from synmt.syntax.parse import Parse
from synmt.syntax.whitespace import evenly_spaced


def load(folder: Path, language: str, package: str, device: str, batch_words: int, *, arcs: bool) -> Any:
    """Load the models; raise anything where they do not work."""
    import stanza
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    with apart():
        pipeline = stanza.Pipeline(
            language,
            dir=str(folder),
            package=package,
            processors=stanza_models.PROCESSORS,
            device=device,
            download_method=None,  # type: ignore[arg-type]
            logging_level="CRITICAL",
            tokenize_no_ssplit=True,
            # a batch of ours goes through each model at once; twice, since punctuation is not counted by us
            pos_batch_size=batch_words,
            pos_batch_maximum_tokens=2 * batch_words,
            depparse_batch_size=2 * batch_words,
        )
    if arcs:
        check_graph_parser(pipeline.processors["depparse"])
    # a model that cannot read this is broken: say so now, rather than give flat trees for a whole corpus
    run(pipeline, ["1 ."], arcs=arcs)
    return pipeline


def run(pipeline: Any, batch: list[str], *, arcs: bool) -> list[tuple[Parse, str]]:
    """Parse lines joined by empty lines, which Stanza never joins: tree and failure of each line."""
    from stanza.models.common.chuliu_edmonds import chuliu_edmonds
    from stanza.models.common.doc import Document
    from stanza.models.depparse import model

    processors = pipeline.processors
    with apart(), quick_search(model, "chuliu_edmonds_one_root", chuliu_edmonds):
        text = "\n\n".join(map(evenly_spaced, batch))
        document = processors["tokenize"].process(text)
        longest = max((len(sentence.tokens) for sentence in document.sentences), default=0)
        if longest > LONGEST:
            document = Document(cut(document.to_dict()), text)
        for name in ("mwt", "pos", "lemma"):
            if name in processors:
                document = processors[name].process(document)
        if arcs:
            document, tables = parse_with_arcs(processors["depparse"], document)
        else:
            document, tables = processors["depparse"].process(document), None
    return parses_of(batch, document.sentences, tables)


@contextmanager
def apart() -> Iterator[None]:
    """Leave the process as it was: its random numbers, its warnings, its number of threads.

    One thread, because more only wait for each other on matrices of this size.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_num_threads(threads)
