"""What a call of `synmt translate` asks for, and what of it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.cli.arguments import wrong_checkpoint
from synmt.errors import SynmtError, UsageError, all_in_one

if TYPE_CHECKING:
    from synmt.decode.options import Sampling


@dataclass(frozen=True)
class Asked:
    """Files and formats, by the names of the options."""

    source: str
    output: Path | None
    prefixes: Path | None
    parses: Path | None
    parse_override: Path | None
    alignments: str | None
    jsonl: bool
    scores: bool
    n_best: int

    @property
    def alignment_file(self) -> Path | None:
        """Where alignments are written, if not into the objects."""
        return None if self.alignments in (None, "-") else Path(self.alignments)


def check_asked(asked: Asked, checkpoint: str) -> None:
    """Refuse what cannot be, all of it at once."""
    problems = [*_names(checkpoint), *_inputs(asked), *_outputs(asked), *_formats(asked)]
    if problems:
        raise all_in_one(problems)


def sampling_of(
    sample: bool,
    top_k: int | None,
    top_p: float | None,
    temperature: float | None,
    seed: int | None,
    *,
    beam_size: int | None = None,
) -> Sampling | None:
    """Join the options of sampling; raises UsageError where they come without --sample, or a beam with it."""
    from synmt.decode.options import Sampling

    values = {"top_k": top_k, "top_p": top_p, "temperature": temperature, "seed": seed}
    given = {name: value for name, value in values.items() if value is not None}
    if sample and beam_size is not None:
        raise UsageError(
            "pieces are drawn at random, so --beam-size would change nothing",
            do="Leave it out; --n-best says how many translations are drawn",
        )
    if sample:
        return Sampling(**given)  # type: ignore[arg-type]
    if given:
        names = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UsageError(f"nothing is drawn at random, so {names} would change nothing", do="Add --sample")
    return None


def diversity_of(groups: int, diversity: float | None) -> dict[str, float]:
    """Give the value for groups of hypotheses; raises UsageError where there is one group."""
    if diversity is not None and groups == 1:
        raise UsageError("--diversity is between groups of hypotheses, and there is one", do="Add --groups 2 or more")
    return {} if diversity is None else {"diversity": diversity}


def _names(checkpoint: str) -> Iterator[SynmtError]:
    if wrong := wrong_checkpoint(checkpoint):
        yield wrong


def _inputs(asked: Asked) -> Iterator[SynmtError]:
    others = {"--parses": asked.parses, "--parse-override": asked.parse_override, "--prefixes": asked.prefixes}
    piped = [name for name, path in others.items() if str(path) == "-"]
    if asked.source == "-" and piped:
        what = "prefixes" if piped[0] == "--prefixes" else "trees"
        yield UsageError(f"standard input cannot be both the text and its {what}", where=piped[0])
    elif len(piped) > 1:
        yield UsageError(f"standard input cannot be both {' and '.join(piped)}")


def _outputs(asked: Asked) -> Iterator[SynmtError]:
    inputs = [Path(asked.source)] if asked.source != "-" else []
    inputs += [path for path in (asked.parses, asked.parse_override, asked.prefixes) if path is not None]
    for path in (asked.output, asked.alignment_file):
        if path is not None and path.exists() and any(each.exists() and path.samefile(each) for each in inputs):
            yield UsageError("the output would replace the input", where=str(path))
    for name, path in (("--output", asked.output), ("--alignments", asked.alignment_file)):
        if path is not None and path.is_dir():
            yield UsageError(f"'{path}' is a folder, a file was expected", where=name)
    both = [path.resolve() for path in (asked.output, asked.alignment_file) if path is not None]
    if len(both) > len(set(both)):
        yield UsageError("the alignments would replace the translations", where=str(asked.output))


def _formats(asked: Asked) -> Iterator[SynmtError]:
    if asked.jsonl and asked.scores:
        yield UsageError("with --jsonl, each object has the scores already", where="--scores")
    if asked.jsonl and asked.prefixes is not None:
        yield UsageError("with --jsonl, a prefix is the field `prefix` of its object", where="--prefixes")
    if asked.alignments == "-" and not asked.jsonl:
        yield UsageError("standard output has the translations", where="--alignments", do="Name a file, or add --jsonl")
    if asked.parse_override is not None and not asked.jsonl and (asked.scores or asked.n_best > 1):
        yield UsageError(
            "a line has three columns already, and no room for scores or several translations",
            where="--parse-override",
            do="Add --jsonl, which has room for all of it",
        )
