"""How translations suffer from other trees: one model and one text, read under one kind of trees after the other.

    UAS(trees) = words of the model's own trees that have the same parent in these / words of the model's own trees

The own trees are those that the model reads when it translates: of the parser it was trained with, or given, under its
recipe's control. The other ones are made of them by `synmt.syntax.controls`, as `parser.control` and `parser.rewire`
make those that a model is trained on, or by another parser. Words are the same where they stand at the same place in
the line; punctuation counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.evaluation.metrics import Metric, score
from synmt.evaluation.significance import Comparison, paired_bootstrap
from synmt.syntax.controls import Control, ControlKind, certain_arcs
from synmt.syntax.parse import Parse, flat_parse

Kind = Literal["own", "rewired", "control", "flat", "parser"]


@dataclass(frozen=True, eq=False)
class Condition:
    """Trees to translate under.

    name: for people.
    share: probability that a word has got another parent; only where kind is `rewired`.
    trees: one for each line.
    """

    name: str
    kind: Kind
    trees: list[Parse]
    share: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of the translations under one kind of trees.

    uas: share of the words of the own trees that keep their parent, 0 to 1.
    score: of the test set, by the metric.
    against_own: this score minus that under the own trees; None for these themselves.
    changed: share of the translations that are another text than under the own trees, 0 to 1.
    """

    name: str
    kind: Kind
    share: float | None
    uas: float
    score: float
    against_own: Comparison | None
    changed: float
    translations: list[str] = field(repr=False)


@dataclass(frozen=True, eq=False)
class TestTrees:
    """What a model reads of each line of a text, and what decides which parents are drawn for it.

    trees: without the words that have no piece, and under the recipe's control.
    keys: the pieces of the lines, as bytes.
    control: the recipe's.
    parsed: the trees without the control; None where they are `trees`.
    """

    lines: Sequence[str]
    trees: list[Parse]
    keys: list[bytes]
    control: Control = field(default_factory=Control)
    parsed: list[Parse] | None = None

    @property
    def uncontrolled(self) -> list[Parse]:
        """Give the trees without the recipe's control."""
        return self.trees if self.parsed is None else self.parsed

    @property
    def with_arcs(self) -> bool:
        """Tell whether the trees come with the parser's probabilities."""
        return any(tree.arcs is not None for tree in self.trees)


def check_translator(translator: Translator, where: str, *, given: bool = False) -> None:
    """Refuse a model that reads no trees, or whose parser is not known and whose trees are not given."""
    if not translator.reads_trees:
        raise UsageError(
            "the model reads no trees, so that other trees change nothing",
            where=where,
            allowed="--robustness takes a run with a variant that reads trees, such as pascal",
            do="See which trees its weights have learnt, by `synmt analyze --trees`",
        )
    if translator.parser_identity is None and not given:
        raise UsageError(
            "the model reads trees, and its run does not say which parser makes them",
            where=where,
            do="Give the trees of the test set by `--parses FILE.conllu`",
        )


def parse_shares(text: str) -> list[float]:
    """Read shares, `0,0.1,0.5`; in ascending order, each once."""
    try:
        shares = sorted({float(part) for part in text.split(",")})
    except ValueError:
        shares = []
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise UsageError(
            f"'{text}' are no shares",
            where="--shares",
            allowed="Shares are numbers from 0 to 1, with commas",
            do="Write for example `--shares 0,0.25,0.5,1`",
        )
    return shares


def read_trees(translator: Translator, lines: Sequence[str], parses: Sequence[Parse]) -> TestTrees:
    """Find what a model reads of the parses of lines."""
    control, keys = translator.reading.control, [b""] * len(lines)
    trees, parsed = list(parses), list(parses)
    for sources in translator.source_batches(lines, parses):
        for one in sources:
            # as `collate` does
            keys[one.index] = one.example.source.tobytes()
            parsed[one.index] = tree = one.example.trees["source"].parse
            trees[one.index] = control.apply(tree, keys[one.index])
    return TestTrees(lines, trees, keys, control, None if control.idle else parsed)


def conditions(
    own: TestTrees, shares: Sequence[float], *, seed: int, others: Sequence[tuple[str, list[Parse]]] = ()
) -> Iterator[Condition]:
    """Make the other trees: rewired ones by share, controls, flat ones, and those of other parsers with their names.

    Where the own trees come with probabilities of arcs, all arcs of rewired trees are certain, so that only parents
    differ from one share to the next; the share 0 then tells what it costs to read the same trees as certain. Else it
    is left out, since its trees are the own ones; so is the control that the own ones are under already.
    """
    certain = replace(own, trees=_certain(own.trees)) if own.with_arcs else own
    for share in shares:
        if share or own.with_arcs:
            name = f"{100 * share:g} % rewired" if share else "own, but certain"
            yield Condition(name, "rewired", _controlled(certain, Control(rewire=share, seed=seed)), share)
    for kind in get_args(ControlKind):
        control = Control(kind, seed=seed)
        if not control.idle and not _same_trees(control, own.control):
            yield Condition(kind, "control", _controlled(certain, control))
    flat = [flat_parse(line) for line in own.lines]
    yield Condition("flat", "flat", _certain(flat) if own.with_arcs else flat)
    for name, trees in others:
        yield Condition(name, "parser", trees)


def measure(
    translator: Translator,
    own: TestTrees,
    made: Iterable[Condition],
    metric: Metric,
    references: Sequence[str],
    advance: Callable[[float], None] = lambda lines: None,
) -> Iterator[Outcome]:
    """Translate under the own trees and under the others, and yield what became of each; own ones come first.

    advance: told of each line that is translated.
    """
    # the trees are under the recipe's control already
    plain = under(translator, Control())

    def translate(trees: list[Parse]) -> Iterator[str]:
        for translation in plain.translate(own.lines, trees):
            yield translation.text
            advance(1)

    texts = list(translate(own.trees))
    base = score(metric, texts, references, own.lines)
    name = "own" if own.control.idle else f"own ({own.control.name})"
    yield Outcome(name, "own", None, 1.0, base.value, None, 0.0, texts)
    for one in made:
        other = list(translate(one.trees))
        scored = score(metric, other, references, own.lines)
        compared = paired_bootstrap(base.statistics, scored.statistics, metric.aggregate)
        changed = sum(text != before for text, before in zip(other, texts, strict=True)) / max(len(texts), 1)
        uas = attachment(own.trees, one.trees)
        yield Outcome(one.name, one.kind, one.share, uas, scored.value, compared, changed, other)


def under(translator: Translator, control: Control) -> Translator:
    """Return a translator of the same model under another control than its recipe's."""
    return translator.with_control(control)


def attachment(own: Sequence[Parse], others: Sequence[Parse]) -> float:
    """Compute the share of words of own trees whose parent is the same in other trees of the lines; 1 for no words."""
    kept = words = 0
    for tree, other in zip(own, others, strict=True):
        there = _parents_by_place(other)
        kept += sum(there.get(place) == parent for place, parent in _parents_by_place(tree).items())
        words += len(tree)
    return kept / words if words else 1.0


def _parents_by_place(parse: Parse) -> dict[tuple[int, int], tuple[int, int]]:
    """Give the place of the parent of the word at each place."""
    places = [(start, end) for start, end in parse.spans.tolist()]
    return {place: places[parent] for place, parent in zip(places, parse.parents.tolist(), strict=True)}


def _same_trees(one: Control, other: Control) -> bool:
    """Tell whether two controls give the same trees; chains are the same whatever the seed."""
    seeds = one.seed == other.seed or one.kind in ("left", "right")
    return one.kind == other.kind and one.rewire == other.rewire and seeds


def _certain(trees: Sequence[Parse]) -> list[Parse]:
    return [replace(tree, arcs=certain_arcs(tree)) for tree in trees]


def _controlled(own: TestTrees, control: Control) -> list[Parse]:
    return [control.apply(tree, key) for tree, key in zip(own.trees, own.keys, strict=True)]
