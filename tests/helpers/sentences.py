"""Two dozen sentences in the nine languages of the known corpora, from sentences.tsv."""

import csv
from pathlib import Path

with open(Path(__file__).with_name("sentences.tsv"), encoding="utf-8", newline="") as stream:
    SENTENCES = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def lines(language: str, count: int, start: int = 0) -> list[str]:
    """Take sentences of one language; the table begins anew when it ends. Equal arguments give
    parallel text."""
    return [SENTENCES[(start + place) % len(SENTENCES)][language] for place in range(count)]
