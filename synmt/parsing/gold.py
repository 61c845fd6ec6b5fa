"""How good a parser is: its trees of raw text against gold trees, as in the CoNLL 2018 shared task
(Zeman et al., 2018).

    UAS = 2 · words with the right parent / (words of the parser + gold words)
    LAS: the relation is right, too, without its subtype

Words are the same if they cover the same characters. The shared task counts the parts of a
multi-word token; here it is one word.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from synmt.errors import SynmtError
from synmt.parsing.parser import StanzaParser
from synmt.reporting.values import Report, Table, count_column, share_column, text_column
from synmt.syntax.conllu import read_conllu
from synmt.syntax.parse import Parse
from synmt.syntax.relations import base_name


def score_parser(parser: StanzaParser, path: Path) -> Report:
    """Parse the text of a CoNLL-U file, and compare the trees with those of the file: all words,
    then those of each gold relation, of which UAS and LAS are recalls."""
    blocks = list(read_conllu(path))
    gold = [right for _, right in blocks]
    began = time.process_time()
    found = parser.parse([text for text, _ in blocks])
    seconds = time.process_time() - began
    words, unlabelled, labelled = Counter[str](), Counter[str](), Counter[str]()
    for tree, right in zip(found, gold, strict=True):
        words.update(map(base_name, right.relations))
        for relation, has_relation in _with_right_parent(tree, right):
            unlabelled[relation] += 1
            labelled[relation] += has_relation
    total, made = words.total(), sum(map(len, found))
    if not total:
        raise SynmtError("there are no words to compare", where=path)
    rows = [["all", total, *(2 * c.total() / (total + made) for c in (unlabelled, labelled))]]
    for relation, count in words.most_common():
        shares = unlabelled[relation] / count, labelled[relation] / count
        rows.append([relation, count, *shares])
    columns = [
        text_column("relation"),
        count_column("words"),
        share_column("UAS", about="words with the right parent: F1 of all, recall of a relation"),
        share_column("LAS", about="whose relation is right, too, without its subtype"),
    ]
    speed = made / max(seconds, 1e-9)
    return Report(
        title=f"{path.name}: {len(gold):,} sentences",
        parts=[Table(columns=columns, rows=rows)],
        notes=[f"{made:,} words, {speed:,.0f} for each second of processor time"],
        facts={"words_per_second": speed},
    )


def _with_right_parent(found: Parse, gold: Parse) -> Iterator[tuple[str, bool]]:
    """Yield the gold relation of each word with the right parent, and whether the parser has it."""
    spans, right = (list(map(tuple, parse.spans.tolist())) for parse in (found, gold))
    number = {span: word for word, span in enumerate(spans)}
    for word, span in enumerate(right):
        if span in number:
            other, relation = number[span], base_name(gold.relations[word])
            # a root is its own parent
            if spans[found.parents[other]] == right[gold.parents[word]]:
                yield relation, relation == base_name(found.relations[other])
