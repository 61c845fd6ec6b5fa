"""`synmt score --model`: how likely a model finds given translations, and whether it prefers right to wrong ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.cli import console
from synmt.cli.arguments import wrong_checkpoint
from synmt.errors import SynmtError, UsageError

if TYPE_CHECKING:
    from synmt.decode.pairs import PairScore, Totals
    from synmt.decode.translator import Translator


def score_model(
    *,
    models: list[Path],
    source: Path | None,
    target: Path | None,
    contrast: list[str],
    checkpoint: str,
    parses: Path | None,
    batch_size: int | None,
    device: str,
    samples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Score pairs of lines by one model, or judge one model or more by contrastive sets."""
    _check(models, source, target, contrast, checkpoint, parses)
    if contrast:
        from synmt.cli.score_contrast import score_contrast

        score_contrast(
            models=models,
            names=contrast,
            parses=parses,
            load=lambda run: load_model(run, checkpoint, device, batch_size),
            bootstrap={"samples": samples, "seed": seed},
            as_json=as_json,
        )
        return
    assert source is not None
    assert target is not None
    translator = load_model(models[0], checkpoint, device, batch_size)
    scores = _scores(translator, source, target, parses)
    totals, pairs = _write_all(scores, [] if as_json else None)
    if as_json:
        summary = {"model": models[0].resolve().name, "checkpoint": checkpoint, **totals.as_json()}
        print(json.dumps({"summary": summary, "pairs": pairs}, ensure_ascii=False, indent=2))
    _show(totals)


def load_model(run: Path, checkpoint: str, device: str, batch_size: int | None) -> Translator:
    """Load the model of a run."""
    from synmt.decode.translator import Translator
    from synmt.run import find_run

    decoding: dict[str, Any] = {"batch_size": batch_size} if batch_size is not None else {}
    return Translator.load(find_run(run), device=device, which=checkpoint, **decoding)


def _check(
    models: list[Path], source: Path | None, target: Path | None, contrast: list[str], checkpoint: str, parses: Any
) -> None:
    if wrong := wrong_checkpoint(checkpoint):
        raise wrong
    if not models:
        raise UsageError("no model is named", do="Name a run with `--model`")
    if contrast:
        if source or target:
            raise UsageError(
                "a contrastive set brings its own texts", where="--contrast", do="Leave --source, --target"
            )
        if parses and len(contrast) > 1:
            raise UsageError("trees belong to one contrastive set", where="--parses", do="Judge by one set at a time")
        return
    if source is None or target is None:
        raise UsageError("a model scores pairs", do="Give both `--source` and `--target`, or pairs by `--contrast`")
    if len(models) > 1:
        raise UsageError(
            "pairs are scored by one model at a time", where="--model", do="Run it once for each, or take `--contrast`"
        )
    if [str(path) for path in (source, target, parses)].count("-") > 1:
        raise UsageError("standard input can be read only once", do="Give `-` for one of the files")


def _scores(translator: Translator, source: Path, target: Path, parses: Path | None) -> Iterator[PairScore]:
    """Score line by line, and warn of what could not be scored in full."""
    from synmt.decode.pairs import score_pairs
    from synmt.files import read_lines
    from synmt.syntax.conllu import read_parses

    _check_lines(source, target)
    lines, trees = read_lines(source), None
    if parses is not None and translator.reads_trees:
        lines, again = tee(lines)
        trees = read_parses(parses, again)
    elif parses is not None:
        console.remark("the model reads no trees: --parses makes no difference")
    for score in score_pairs(translator, lines, read_lines(target), trees):
        for side, dropped in (("source", score.source_dropped), ("target", score.target_dropped)):
            if dropped:
                console.warn(
                    f"the {side} of line {score.line} has {translator.max_pieces + dropped} pieces; the model takes "
                    f"{translator.max_pieces} (filters.max_pieces), so the last {dropped} are not scored"
                )
        yield score


def _check_lines(source: Path, target: Path) -> None:
    """Refuse texts of different length before anything is scored; a pipe cannot be counted."""
    from synmt.files import count_lines

    if not (source.is_file() and target.is_file()):
        return
    counts = count_lines(source), count_lines(target)
    if counts[0] != counts[1]:
        raise SynmtError(
            f"{counts[1]:,} lines, but {source} has {counts[0]:,}",
            where=str(target),
            do="Line n of both must belong together",
        )


def _write_all(scores: Iterable[PairScore], kept: list[dict[str, Any]] | None) -> tuple[Totals, list[dict[str, Any]]]:
    """Write a line for each pair, or keep them all where a list is given for them."""
    from synmt.decode.pairs import Totals

    totals = Totals()
    for score in scores:
        totals.add(score)
        if kept is not None:
            kept.append(_values(score))
        else:
            sys.stdout.write(json.dumps(_values(score), ensure_ascii=False) + "\n")
    return totals, kept or []


def _values(score: PairScore) -> dict[str, Any]:
    from synmt.decode.pairs import finite

    values = {
        "line": score.line,
        "source": score.source,
        "target": score.target,
        "log_probability": score.log_probability,
        "pieces": score.pieces,
        "perplexity": finite(score.perplexity),
        "tokens": [asdict(token) for token in score.tokens],
    }
    dropped = {"source": score.source_dropped, "target": score.target_dropped}
    return values | {"dropped": dropped} if any(dropped.values()) else values


def _show(totals: Totals) -> None:
    if totals.left_out:
        console.warn(f"{totals.left_out:,} pairs are not in the summary: no text in the source, or a target cut off")
    if totals.unknown:
        console.warn(f"{totals.unknown:,} pieces of the targets are unknown to the model, and scored as such")
    if not totals.pairs:
        return
    rows = [["log-probability by sentence", f"{totals.pairs:,}", f"{totals.mean:.3f}"]]
    rows += [
        [f"perplexity by {unit}", f"{count:,}", f"{totals.perplexity(unit):.3f}"] for unit, count in _units(totals)
    ]
    console.table("", ["summary", "number", "value"], rows)
    console.remark("in nats; the end of a sentence counts as one piece, word and character")


def _units(totals: Totals) -> Iterable[tuple[str, int]]:
    return totals.units.items()
