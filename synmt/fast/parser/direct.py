"""Lines to trees by Stanza's models without its documents, for models that read words and their
characters.

What Stanza computes and no tree needs is left out: features, lemmas, relations of arcs that are not
in the tree, and everything about a word that was computed for an earlier line. All other models go
through pipeline.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synmt.arrays import Texts
from synmt.fast.parser.graph import DirectGraphParser, ParserScores
from synmt.fast.parser.tokenizer import DirectTokenizer
from synmt.fast.parser.words import DirectTagger, Packing
from synmt.parsing.arcs import (
    greedy_trees,
    joint_probabilities,
    relation_names,
    searched_tree,
)
from synmt.parsing.lines import MAX_CHARACTERS, Analysis, Tokens, given_tokens, join_analyses
from synmt.parsing.stanza_internals import isolated
from synmt.syntax.parse import Parse, evenly_spaced


class DirectParser:
    """The models of a Stanza Pipeline for which `supports` is true."""

    def __init__(self, pipeline: Any) -> None:
        processors = pipeline.processors
        self.tokenizer = DirectTokenizer(processors["tokenize"])
        self.tagger = DirectTagger(processors["pos"].trainer.model)
        self.parser = DirectGraphParser(processors["depparse"].trainer.model, self.tagger.names)
        self.repairs = bool(processors["depparse"].config.get("resolve_head_constraints", True))
        self.relations = relation_names(processors["depparse"].vocab["deprel"])

    @classmethod
    def of(cls, pipeline: Any) -> DirectParser | None:
        """Make the parser of a pipeline; None if one of its models cannot be called directly."""
        return cls(pipeline) if cls.supports(pipeline) else None

    @staticmethod
    def supports(pipeline: Any) -> bool:
        """Return whether every model of a pipeline is one that can be called directly."""
        processors = pipeline.processors
        return (
            set(processors) == {"tokenize", "pos", "lemma", "depparse"}
            and bool(processors["lemma"].use_identity)
            and DirectTokenizer.supports(processors["tokenize"])
            and DirectTagger.supports(getattr(processors["pos"].trainer, "model", None))
            and DirectGraphParser.supports(getattr(processors["depparse"].trainer, "model", None))
        )

    def reads(self, lines: Texts) -> bool:
        """Return whether all lines are short enough: Stanza's tokenizer reads longer ones in
        several parts."""
        return max(map(len, lines)) <= MAX_CHARACTERS

    def forget(self) -> None:
        """Drop what was computed for earlier lines."""
        self.tagger.vectors.forget()
        self.parser.vectors.forget()

    def parse(self, lines: Texts, *, arcs: bool, pretokenized: bool) -> list[tuple[Parse, str]]:
        """Parse lines of at most 900 characters: tree and failure ("" if none) of each."""
        import torch

        with isolated(), torch.no_grad():
            return self._parse(lines, arcs, pretokenized)

    def _parse(self, lines: Texts, arcs: bool, pretokenized: bool) -> list[tuple[Parse, str]]:
        if pretokenized:
            tokenized = given_tokens(lines)
        else:
            tokenized = self.tokenizer(list(map(evenly_spaced, lines)))
        parts = [(index, part) for index, tokens in enumerate(tokenized) for part in tokens.split()]
        # a stable sort from long to short, which packed sequences need
        parts.sort(key=lambda part: -len(part[1].words))
        of_line: list[list[Analysis]] = [[] for _ in lines]
        analyses = self._analyses([part for _, part in parts], arcs)
        for (index, _), analysis in zip(parts, analyses, strict=True):
            of_line[index].append(analysis)
        for parts_of_line in of_line:
            parts_of_line.sort(key=lambda analysis: analysis.spans[0])
        return list(map(join_analyses, lines, of_line))

    def _analyses(self, parts: list[Tokens], arcs: bool) -> list[Analysis]:
        """Analyse sentences from long to short."""
        if not parts:
            return []
        words = [part.words for part in parts]
        tags = self.tagger(words, packing := Packing([len(each) for each in words]))
        rooted = Packing([length + 1 for length in packing.lengths])
        scores = self.parser.read(words, tags, rooted)
        trees = self._trees(scores)
        numbers = tags.cpu().numpy()[packing.numbers]  # (B, T)
        names, relations = self.tagger.names, self.relations
        return [
            Analysis(
                spans=part.spans,
                parents=[head - 1 if head else word for word, head in enumerate(tree)],
                relations=[
                    relations[label] if head else "root"
                    for label, head in zip(labels, tree, strict=True)
                ],
                tags=[names[tag] or "_" for tag in numbers[number, : len(tree)].tolist()],
                arcs=joint_probabilities(
                    scores.arcs_of(number), scores.labels(number), self.relations
                )
                if arcs
                else None,
            )
            for number, (part, (tree, labels)) in enumerate(zip(parts, trees, strict=True))
        ]

    def _trees(self, scores: ParserScores) -> list[tuple[list[int], list[int]]]:
        """Find the best tree of each sentence, and its relations: the lists do not have the
        root."""
        packing = scores.packing
        heads, is_tree = greedy_trees(scores.arcs, packing.real)  # (B, W), (B,)
        for number in np.flatnonzero(~is_tree).tolist():
            heads[number, : packing.lengths[number]] = searched_tree(scores.arcs_of(number))
        sentence, place = packing.places
        labels = np.zeros_like(heads)  # (B, W)
        labels[sentence, place] = scores.best_labels(
            packing.numbers[sentence, place], packing.numbers[sentence, heads[sentence, place]]
        )
        return [
            self._repaired(
                scores, number, heads[number, 1:length].tolist(), labels[number, 1:length].tolist()
            )
            for number, length in enumerate(packing.lengths)
        ]

    def _repaired(
        self, scores: ParserScores, number: int, tree: list[int], labels: list[int]
    ) -> tuple[list[int], list[int]]:
        """Change a tree in which a word has two subjects or two objects as Stanza does."""
        from stanza.models.depparse.head_constraints import (
            find_head_constraint_violations,
            resolve_head_constraint_violations,
        )

        names = [self.relations[label] for label in labels]
        if not (self.repairs and find_head_constraint_violations([0, *tree], names)):
            return tree, labels
        heads, new_labels = resolve_head_constraint_violations(
            scores.arcs_of(number),
            scores.labels(number),
            np.array([0, *tree]),
            self.parser.model.vocab["deprel"],
        )
        return heads[1:].tolist(), np.array(new_labels).tolist()
