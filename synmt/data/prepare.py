"""Prepares a corpus: filter, vocabulary, pieces in shards.

Every file depends only on the inputs and the recipe, and gets its name when it is complete. So
after an interruption, preparing again continues with the missing files, and the folder ends the
same, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import check_parts, part_tags
from synmt.corpora.resolve import Corpus
from synmt.data.arrow import table_bytes
from synmt.data.corpus import FORMAT, is_complete
from synmt.data.encoding import (
    KEPT_FILE,
    Encoder,
    encoding_processes,
    kept_reasons,
    remove_unfinished,
    summarize,
)
from synmt.data.filtering import KEPT, count_reasons, judge_pairs
from synmt.data.task_corpus import bracket_units, task_tags
from synmt.data.text_pairs import read_chunks
from synmt.data.vocabulary import Vocabularies, Vocabulary
from synmt.data.vocabulary_training import draw_lines, train_vocabulary
from synmt.errors import SynmtError
from synmt.files.checksums import write_last
from synmt.files.reading import count_lines, fingerprint, stored_sha256
from synmt.files.writing import locked, write_content
from synmt.parallel.engine import started_workers
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.schema import Recipe
from synmt.reporting.progress import progress

_CHUNK = 50_000
"""Pairs whose lines are in memory while the text for a vocabulary is drawn."""


def prepared_folder(
    root: Path, recipe: Recipe, corpus: Corpus, vocabularies: Vocabularies | None = None
) -> Path:
    """Name the prepared corpus of a recipe and its files; another vocabulary or filter gives
    another name.

    vocabularies: those of another run, if they are not learned from the corpus.
    """
    settings = (recipe.filters.identity(), recipe.vocabulary.identity())
    # weights change which rows an epoch reads, but not the rows
    tags = [tuple((part.lines, part.tag) for part in corpus.parts)] * bool(part_tags(corpus.parts))
    hashes = [fingerprint(vocabularies[side].to_bytes()) for side in SIDES] if vocabularies else []
    key = fingerprint(
        FORMAT,
        corpus.source,
        corpus.target,
        settings,
        tuple(_input_hashes(corpus).items()),
        *tags,
        *hashes,
    )
    return root / f"{corpus.name}-{corpus.source}-{corpus.target}-{key}"


def prepare(
    recipe: Recipe, corpus: Corpus, folder: Path, vocabularies: Vocabularies | None = None
) -> None:
    """Prepare a corpus in a folder, or continue after an interruption; does nothing if it is
    complete.

    vocabularies: those of another run; without them, they are learned from the corpus.
    """
    if is_complete(folder):
        return
    with locked(folder, "this corpus"):
        remove_unfinished(folder)
        lines = check_lengths(corpus.splits())
        check_parts(corpus.parts, lines["train"])
        # the filter and the encoder share them
        with started_workers(encoding_processes(lines["train"])):
            _filter(recipe, corpus, folder, lines["train"])
            # sides that share a table of pieces may segment differently
            alike = not vocabularies or len({vocabularies[side].to_bytes() for side in SIDES}) == 1
            joint = recipe.vocabulary.joint and alike
            names: dict[Side, str] = {side: "vocabulary" if joint else side for side in SIDES}
            if vocabularies:
                for side in SIDES:
                    vocabularies[side].save(folder, names[side])
            _learn_vocabularies(recipe, corpus, folder, lines["train"], names)
            source, target = (Vocabulary.load(folder, names[side]) for side in SIDES)
            tail = 1 if task_tags(recipe) else 0
            for split in ("train", "valid"):
                parts = corpus.parts if split == "train" else ()
                encoder = Encoder(recipe.filters.max_pieces, (source, target), split, parts, tail)
                encoder.encode(corpus.splits()[split], folder, lines[split])
        pieces = {
            "vocabularies": names,
            "vocabulary_sizes": {"source": len(source), "target": len(target)},
        }
        _finish(recipe, corpus, folder, lines, pieces)


def check_lengths(splits: Mapping[str, SplitFiles]) -> dict[str, int]:
    """Count the lines of every split; raises SynmtError where sides differ, and for an empty test
    set."""
    counts: dict[str, int] = {}
    for split, files in splits.items():
        source, target = (count_lines(path, allowed=()) for path in (files.source, files.target))
        # what is kept of train and valid is counted later
        if not source and not target and split not in ("train", "valid"):
            raise SynmtError(
                "the test set has no lines",
                where=files.source,
                do="Fill both files, or remove the test set",
            )
        if source != target:
            raise SynmtError(
                f"{files.source} has {source:,} lines, {files.target} has {target:,}",
                do="Both sides need the same number of lines: each line is the translation of the "
                "same line",
            )
        counts[split] = source
    return counts


def _filter(recipe: Recipe, corpus: Corpus, folder: Path, lines: int) -> None:
    path = folder / KEPT_FILE
    if not path.exists():
        languages = corpus.source, corpus.target
        codes = judge_pairs(corpus.train, recipe.filters, languages, lines=lines, where=folder)
        write_content(path, table_bytes({"reason": pa.array(codes)}, {"format": FORMAT}))
    _check_left(corpus, count_reasons(kept_reasons(folder)))


def _check_left(corpus: Corpus, counts: Mapping[str, int]) -> None:
    """Raise SynmtError unless a pair of the training text is kept."""
    if not counts["kept"]:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in counts.items() if count)
        raise SynmtError(
            f"no pair of the training text is kept ({reasons or 'it has no lines'})",
            where=corpus.train.source,
            do="Check that source and target belong together, or relax the recipe's `filters`",
        )


def _learn_vocabularies(
    recipe: Recipe, corpus: Corpus, folder: Path, lines: int, names: Mapping[Side, str]
) -> None:
    settings = recipe.vocabulary
    missing = {name for name in names.values() if not any(folder.glob(f"{name}.*"))}
    if not missing:
        return
    is_kept = kept_reasons(folder) == KEPT
    with progress("prepare: vocabulary", lines, "lines") as advance:
        for name in sorted(missing):
            sides = [number for number, side in enumerate(SIDES) if names[side] == name]
            symbols = task_tags(recipe)
            if 0 in sides:
                symbols += (*part_tags(corpus.parts), *bracket_units(recipe, corpus))
            chunks = read_chunks(corpus.train, _CHUNK)
            train_vocabulary(
                draw_lines(chunks, is_kept, sides, settings.training_lines),
                settings,
                symbols,
                workers=encoding_processes(lines),
                where=folder,
            ).save(folder, name)
        advance(lines)


def _finish(
    recipe: Recipe, corpus: Corpus, folder: Path, lines: dict[str, int], pieces: dict[str, object]
) -> None:
    splits = {split: summarize(folder, split, lines[split]) for split in ("train", "valid")}
    _check_left(corpus, splits["train"]["reasons"])
    if not splits["valid"]["rows"]:
        raise SynmtError(
            "no line of the validation text has words on both sides",
            where=corpus.valid.source,
            do="This text selects the best checkpoint: use one that is translated",
        )
    facts = {
        "format": FORMAT,
        "corpus": corpus.name,
        "source": corpus.source,
        "target": corpus.target,
        "inputs": _input_hashes(corpus),
        "filters": recipe.filters.model_dump(mode="json"),
        "vocabulary": json.loads(recipe.vocabulary.identity()),
        **pieces,
        "splits": splits,
    }
    write_last(
        folder, "corpus.json", facts, "*.arrow", "*.model", "*.words", indent=1, ensure_ascii=False
    )


def _input_hashes(corpus: Corpus) -> dict[str, str]:
    return {
        f"{split}.{side}": stored_sha256(getattr(getattr(corpus, split), side))
        for split in ("train", "valid")
        for side in SIDES
    }
