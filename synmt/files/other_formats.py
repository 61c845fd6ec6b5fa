"""Recognizes by its beginning what is not plain text, and says how to read it."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Collection

from synmt.errors import UsageError

_PROLOGUE = r"\s*(?:<\?xml\s[^>]*>\s*)?(?:<!DOCTYPE[^>]*>\s*|<!--.*?-->\s*)*"
_BY_ID = (
    "A recipe reads public corpora by their id, such as `corpus.test: [wmt17]` (synmt --docs "
    "corpora)"
)
_TAKE_OUT = "Take out its sentences, one per line"
_TMX = "`python -m mtdata.tmx -i FILE -l en-de` writes a column for each language"
_SEGMENTS = r"such as with `sed -n 's:.*<seg[^>]*>\(.*\)</seg>.*:\1:p'`"
_TREES = (
    "Trees belong in `--parses` or in `source_parses` of a recipe; `sed -n 's/^# text = //p'` "
    "takes out the text"
)
_PACKED = "Unpack it with `{}`, or compress it with gzip"

# a line of text may begin with `<`, `{`, `[` or `#`: each pattern needs more than what a sentence
# has
_FORMATS = (
    ("gzip", rb"\x1f\x8b\x08", "Let the file's name end in .gz, or unpack it with `zcat`"),
    ("bzip2", rb"BZh[1-9]1AY&SY", _PACKED.format("bzip2 -dk")),
    ("xz", rb"\xfd7zXZ\0", _PACKED.format("xz -dk")),
    ("zstd", rb"\x28\xb5\x2f\xfd", _PACKED.format("zstd -dk")),
    ("a zip archive", rb"PK\x03\x04", "Unpack it with `unzip`"),
    ("UTF-32", rb"\xff\xfe\0\0|\0\0\xfe\xff", "Convert it with `iconv -f utf-32 -t utf-8`"),
    ("UTF-16", rb"\xff\xfe|(?:[^\0]\0){8}", "Convert it with `iconv -f utf-16le -t utf-8`"),
    ("UTF-16", rb"\xfe\xff|(?:\0[^\0]){8}", "Convert it with `iconv -f utf-16be -t utf-8`"),
    ("PDF", rb"%PDF-\d", _TAKE_OUT),
    ("RTF", rb"{\\rtf\d", _TAKE_OUT),
    ("TMX", f"{_PROLOGUE}<tmx\\s[^>]*version=", f"{_TMX}. {_BY_ID}"),
    ("XLIFF", f"{_PROLOGUE}<xliff\\s[^>]*version=", _TAKE_OUT),
    (
        "SGM",
        _PROLOGUE
        + r"(?:<mteval>\s*)?<(?:(?:src|ref|tst)set\s[^>]*=|doc\s[^>]*\b(?:docid|sysid|genre|origlang)=)",
        f"{_TAKE_OUT}, {_SEGMENTS}. {_BY_ID}",
    ),
    ("HTML", _PROLOGUE + r"<html(?:\s[^>]*)?>\s*<|\s*<!DOCTYPE html[^>]*>\s*(?:<|$)", _TAKE_OUT),
    ("XML", r"\s*<\?xml\s[^>]*version=[^>]*\?>\s*(?:<|$)", f"{_TAKE_OUT}, {_SEGMENTS}. {_BY_ID}"),
    (
        "text with tags of IWSLT",
        r"<url>[^<\n]*</url>\s*<(?:keywords|speaker|talkid|translator)\b",
        _BY_ID,
    ),
    ("CoNLL-U", r"(?:#[^\n]*\n|\s)*1(?:-\d+)?\t(?:[^\t\n]+\t){8}[^\t\n]+(?:\n|$)", _TREES),
    (
        "JSON",
        r'\s*(?:\[\s*)?\{\s*"[^"\n]*"\s*:\s*["\[{\d.tfn-]|\s*\[\s*\n\s*"|\s*\["[^\n]*"\]\s*$',
        f"`synmt translate` reads JSON lines with `--jsonl`. {_TAKE_OUT}, such as with `jq "
        "-r .text`",
    ),
)
"""Names, patterns of the beginning, and what to do."""
ANY_FORMAT = frozenset(name for name, _, _ in _FORMATS)


def refuse_other_formats(beginning: bytes, *, where: str, allowed: Collection[str] = ()) -> None:
    """Raise UsageError if a file with this beginning is not plain text.

    allowed: names of formats that the file may have.
    """
    text = beginning.removeprefix(BOM_UTF8)
    for name, pattern, do in _FORMATS:
        raw = pattern if isinstance(pattern, bytes) else pattern.encode()
        if name not in allowed and re.match(raw, text, re.DOTALL | re.IGNORECASE):
            raise UsageError(f"this is {name}, not one sentence per line", where=where, do=do)
