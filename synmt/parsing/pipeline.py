"""Stanza's Pipeline: loaded once, run on batches of lines, hidden from the rest of synmt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from synmt.errors import unknown_name
from synmt.parsing.arcs import best_tree, parse_with_arcs
from synmt.parsing.lines import LONGEST, Parsed, given_words, parses_of, split_long, tokens_of
from synmt.parsing.models import PROCESSORS
from synmt.parsing.stanza_internals import checked_version, isolated, replaced, without_optimizers
from synmt.syntax.parse import evenly_spaced


def model_files(folder: Path, language: str, package: str) -> dict[str, Path]:
    """List the files that `load` would read, by their path in the folder; the files themselves are
    not read.

    These are the steps with which Stanza's Pipeline finds its files (stanza/pipeline/core.py).
    Raises UsageError for an package that is unknown, or that lacks a model.
    """
    from stanza.pipeline.core import build_default_config
    from stanza.resources import common

    with common.logging_level_context("CRITICAL", None):
        code, _, _, packages = common.process_pipeline_parameters(
            language, str(folder), package, PROCESSORS
        )
        resources = common.load_resources_json(str(folder))
        code = resources[code].get("alias", code)
        models = common.maintain_processor_list(resources, code, None, packages)
        chosen = [(name, spec.package) for name, specs in models for spec in specs]
        lacks = any(
            model not in (*resources[code].get(name, ()), "identity") for name, model in chosen
        )
        if lacks or "tokenize" not in dict(chosen):
            packages = sorted(resources[code].get("packages", ()))
            raise unknown_name("package", package, packages, where=f"{folder}, {language}")
        config = build_default_config(
            resources, code, str(folder), common.add_dependencies(resources, code, models)
        )
    paths = [Path(value) for key, value in config.items() if key.endswith("_path")]
    return {path.relative_to(folder).as_posix(): path for path in paths}


def load(
    folder: Path, language: str, package: str, device: str, batch_words: int, *, arcs: bool
) -> Any:
    """Load the models; raise any exception if they do not work."""
    import torch

    checked_version()
    # an unknown package is reported by its name
    model_files(folder, language, package)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    # otherwise a GPU rounds the products of an LSTM to ten bits, and finds other trees than a CPU
    # more often
    torch.backends.cudnn.allow_tf32 = False
    # what was fastest where Stanza makes the batches
    size = min(batch_words, 640)
    pipeline = _pipeline(folder, language, package, PROCESSORS, device, size)
    # a model that cannot parse this is broken: fail now instead of making flat trees for a whole
    # corpus
    run(pipeline, ["1 ."], arcs=arcs)
    return pipeline


def load_tokenizer(folder: Path, language: str, package: str) -> Any:
    """Load the tokenizer alone; raise any exception if it does not work."""
    checked_version()
    return _pipeline(folder, language, package, "tokenize", "cpu")


def _pipeline(
    folder: Path, language: str, package: str, processors: str, device: str, size: int = 640
) -> Any:
    import stanza

    with isolated(), without_optimizers():
        return stanza.Pipeline(
            language,
            dir=str(folder),
            package=package,
            processors=processors,
            device=device,
            download_method=None,  # type: ignore[arg-type]
            logging_level="CRITICAL",
            tokenize_no_ssplit=True,
            # twice the size in tokens, since we do not count punctuation
            pos_batch_size=size,
            pos_batch_maximum_tokens=2 * size,
            depparse_batch_size=2 * size,
        )


def tokenize(pipeline: Any, batch: Sequence[str]) -> list[list[str]]:
    """Find the surface tokens of each line."""
    with isolated():
        document = pipeline.processors["tokenize"].process(_joined(batch))
    return tokens_of(batch, document.sentences)


def run(
    pipeline: Any,
    batch: list[str],
    *,
    arcs: bool,
    pretokenized: bool = False,
    features: Collection[str] = (),
) -> list[Parsed]:
    """Parse lines: tree and failure ("" if none) of each.

    pretokenized: the lines are words with a space between two; no word is split or joined.
    features: what the trees say of words, of what the models give.
    """
    from stanza.models.common.doc import Document
    from stanza.models.depparse import model

    processors = pipeline.processors
    with isolated(), replaced(model, "chuliu_edmonds_one_root", lambda _: best_tree):
        text = _joined(batch)
        document = (
            Document(given_words(batch), text)
            if pretokenized
            else processors["tokenize"].process(text)
        )
        if any(len(sentence.tokens) > LONGEST for sentence in document.sentences):
            document = Document(split_long(document.to_dict()), text)
        for name in ("pos", "lemma") if pretokenized else ("mwt", "pos", "lemma"):
            if name in processors:
                document = processors[name].process(document)
        if arcs:
            document, tables = parse_with_arcs(processors["depparse"], document)
        else:
            document, tables = processors["depparse"].process(document), None
    return parses_of(batch, document.sentences, tables, features)


def _joined(batch: Sequence[str]) -> str:
    # Stanza never joins lines with an empty line between them
    return "\n\n".join(map(evenly_spaced, batch))


def free_memory() -> None:
    """Return unused GPU memory, so that a smaller batch may fit."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def on_gpu(device: str) -> bool:
    """Check whether `auto` or a device of PyTorch is a GPU."""
    if device != "auto":
        return device != "cpu"
    import torch

    return torch.cuda.is_available()
