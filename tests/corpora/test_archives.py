"""Texts inside archives: found, decompressed, refused; and the formats they are in."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from contextlib import nullcontext
from random import Random

import pytest
from public_archives import parts, sgml, talk_xml, tgz, zipped
from refusing import assert_fails

from synmt.corpora import formats
from synmt.corpora.archives import Packed
from synmt.corpora.formats import one_line, read_fields, read_pairs, read_side, with_progress

TEXT = "Guten Tag.\nDer Affe isst eine Banane.\n"


@pytest.fixture
def place(tmp_path):
    def put(name, content):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return put


def read(*names, files):
    with Packed(tuple(files), names).open() as stream:
        return stream.read().decode()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_compression_is_found_by_the_first_bytes(place, pack):
    assert read(files=[place("whatever", pack(TEXT.encode()))]) == TEXT


def test_a_member_of_a_zip_is_read_by_a_pattern_of_its_name(place):
    archive = place(
        "a.zip",
        zipped({"README": b"no\n", "Books.de-en.de": TEXT.encode(), "Books.de-en.en": b"no\n"}),
    )
    assert read("*.de", files=[archive]) == TEXT


def test_archives_inside_archives_and_compressed_members_are_read(place):
    inner = tgz({"de-en/train.de": TEXT.encode()})
    small = zipped({"x.gz": gzip.compress(TEXT.encode())})
    archive = place(
        "a.tgz",
        tgz({"texts/de-en.tgz": inner, "y.zip": small, "./z.xz": lzma.compress(TEXT.encode())}),
    )
    assert read("texts/de-en.tgz", "de-en/train.de", files=[archive]) == TEXT
    assert read("y.zip", "x.gz", files=[archive]) == TEXT
    assert read("z.xz", files=[archive]) == TEXT


@pytest.mark.parametrize("count", [1, 2, 7])
def test_an_archive_in_parts_is_read_as_one(place, count):
    text = TEXT * 300
    pieces = parts("a.tar.gz", tgz({"b/c.de": text.encode()}), count)
    assert read("b/c.de", files=[place(name, content) for name, content in pieces.items()]) == text


# what is refused


def tar_with(**attributes):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("c.de")
        for key, value in attributes.items():
            setattr(info, key, value)
        archive.addfile(info)
    return packed.getvalue()


def zip_with_link():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        link = zipfile.ZipInfo("c.de")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    return packed.getvalue()


LINKS = [
    tar_with(type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    tar_with(type=tarfile.LNKTYPE, linkname="../secret"),
    zip_with_link(),
    tar_with(type=tarfile.FIFOTYPE),
]


@pytest.mark.parametrize("content", LINKS, ids=["symbolic", "hard", "zip", "pipe"])
def test_links_are_not_followed_and_pipes_not_read(place, content):
    assert_fails(r"the archive has no file c\.de", read, "c.de", files=[place("a", content)])


def test_a_member_that_is_missing_gets_a_list_of_those_that_exist(place):
    archive = place("a.tgz", tgz({f"{i}.de": b"" for i in range(12)}))
    assert_fails(
        r"a\.tgz: the archive has no file c\.de\. It has 0\.de, .* and 2 more",
        read,
        "c.de",
        files=[archive],
    )


NOISE = Random(1).randbytes(200_000)


def zip_with(byte, local, central):
    """Make a zip file, and change a byte in both descriptions of its file."""
    content = bytearray(zipped({"c.de": b"a\n"}))
    content[local] = byte
    content[content.find(b"PK\x01\x02") + central] = byte
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (tgz({"c.de": NOISE})[:60_000], ""),
        (gzip.compress(tgz({"c.de": NOISE}))[:-30], ""),
        (zipped({"c.de": NOISE})[:60_000], ""),
        (b"<html>404</html>" * 100, ""),
        (zip_with(1, 6, 8), "encrypted"),
        (zip_with(99, 8, 10), "compression method is not supported"),
        (tar_with(pax_headers={"GNU.sparse.map": "a,b", "GNU.sparse.size": "9"}), "invalid lit"),
    ],
    ids=["tgz", "gz", "zip", "page", "encrypted", "unknown compression", "sparse"],
)
def test_a_damaged_archive_is_named(place, content, said):
    damaged = rf"a, c\.de: the file is damaged \(.*{said}.*\)\. Remove .*a"
    assert_fails(damaged, read, "c.de", files=[place("a", content)])


def test_errors_of_whoever_reads_an_archive_are_their_own(place):
    text = Packed((place("a", zipped({"c.de": b"a\n"})),), ("c.de",))
    with pytest.raises(ValueError, match="mine"), text.open():
        raise ValueError("mine")


# formats


def side(place, content, form):
    return list(read_side(Packed((place("text", content),)), form))


def test_lines_end_at_newlines_only_and_lose_no_character(place):
    text = "\ufeffa\u2028b\u0085c\r\n\u3000d\te  \n\nlast"
    assert side(place, text, "txt") == ["a\u2028b\u0085c", "d\te", "", "last"]
    assert side(place, b"Gr\xfc\xdfe\n", "txt") == ["Gr\ufffd\ufffde"]


BROKEN = """<doc>
<seg id=1>bare & ampersand</seg> <seg id='2'>two\nlines</seg>
<hl><SEG id=3>x</SEG></hl>"""


def test_the_segments_of_test_sets_are_read_with_their_entities(place):
    texts = ["Tom & Jerry <3", 'He said "yes".', "", "4 > 3"]
    assert side(place, sgml("srcset", "en", texts, "news", ("en", "de")), "sgm") == texts
    assert side(place, talk_xml(texts, "en", "dev"), "xml") == texts
    assert side(place, BROKEN, "sgm") == ["bare & ampersand", "two lines", "x"]


TALK = """\
<url>http://a</url>
<title>Two.</title>
<description>About: Three.</description>
<talkid>1</talkid>
One.
Two.
Three.
 <reviewer href='x'>A Name</reviewer>
</doc>
"""


def test_talks_are_read_without_their_tags_or_with_their_titles(place):
    texts = ["One.", "Two.", "Three."]
    assert side(place, TALK, "tags") == texts
    assert side(place, TALK, "titles") == ["Two.", "About: Three.", *texts]


def test_fields_are_read_by_their_columns(place):
    rows = "0.9 ||| A-1 ||| 1 ||| 猿 ||| The monkey | eats\n0.8 ||| A-2 ||| 2\n"
    pairs = read_fields(Packed((place("train-1.txt", rows),)), (3, 4))
    assert next(pairs) == ("猿", "The monkey | eats")
    assert_fails(r"-1\.txt: line 2 has no column 5", next, pairs)


def test_tables_are_read(place):
    content = gzip.compress("Guten\rTag\tHello\nMü\tMu\textra\n".encode())
    table = (Packed((place("nc.tsv.gz", content),)),)
    rows = [("Guten Tag", "Hello"), ("Mü", "Mu")]
    assert list(read_pairs(table, "tsv.gz")) == rows
    turned = [row[::-1] for row in rows]
    assert list(read_pairs(table, "tsv.gz", columns=(1, 0))) == turned
    cells = (
        Packed((place("t.csv", 'number,German,English\n1,"Guten, Tag",Hello\nshort\n2,,\n'),)),
    )
    rows = [("Guten, Tag", "Hello"), ("", "")]
    assert list(read_pairs(cells, "csvwithheader", columns=(1, 2))) == rows


def memory(*units):
    """Write a translation memory; each unit has a text for each code of a language."""
    texts = (
        "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items())
        for unit in units
    )
    body = "".join(f"<tu>{text}</tu>" for text in texts)
    return f'<?xml version="1.0"?><tmx version="1.4"><body>{body}</body></tmx>'


def test_a_memory_has_the_units_of_two_languages(place):
    units = [
        {"de": "Tag &amp;amp;\nNacht", "en": "Day"},
        {"fr": "Jour", "en": "Day"},
        # one code of a standard that nobody knows, and two varieties, of which the last one counts
        {"en-US": "color", "en-GB": "colour", "DE": "Farbe", "xx-": "?"},
        {"de": " ", "en": "nothing"},
    ]
    texts = (Packed((place("m.tmx", memory(*units)),)),)
    pairs = [("Tag & Nacht", "Day"), ("Farbe", "colour")]
    assert list(read_pairs(texts, "tmx", languages=("deu", "eng"))) == pairs
    assert list(read_pairs(texts, "tmx", languages=("eng", "deu"))) == [
        pair[::-1] for pair in pairs
    ]


WMT21 = """<?xml version="1.0"?><dataset id="newstest2021"><collection>
<doc id="one"><src lang="en"><p><seg id="1">A &amp;
cat</seg></p><p><seg id="2">Two</seg></p></src>
<ref lang="de" translator="A"><p><seg id="1">Eine Katze</seg><seg id="2">Zwei</seg></p></ref>
<ref lang="de" translator="B"><p><seg id="1">Katze</seg><seg id="2">2</seg></p></ref></doc>
<doc id="two"><src lang="en"><seg>Three</seg></src><ref lang="de"><seg>Drei</seg></ref></doc>
</collection></dataset>"""


def test_a_test_set_of_wmt21_is_read_with_its_first_reference(place):
    pairs = read_pairs((Packed((place("test.xml", WMT21),)),), "wmt21xml")
    assert list(pairs) == [("A & cat", "Eine Katze"), ("Two", "Zwei"), ("Three", "Drei")]


UNREADABLE = [
    ("tmx", "<tmx><body>", "no element found"),
    ("xlsx", "no", "not a zip file|openpyxl"),
    ("csvwithheader", "a,b\nc,d\n" + "x" * 200_000 + ",y\n", "field larger"),
    ("wmt21xml", WMT21.replace('<seg id="2">Zwei</seg>', ""), "argument 2 is shorter"),
    ("another", "text", "synmt cannot read another"),
]


@pytest.mark.parametrize(("form", "content", "why"), UNREADABLE)
def test_what_cannot_be_read_is_an_error_with_advice(place, form, content, why):
    message = rf"text: the file cannot be read as {form} \(.*(?:{why}).*\)\. Remove .*two files"
    assert_fails(
        message,
        list,
        read_pairs((Packed((place("text", content),)),), form, languages=("deu", "eng")),
    )


def test_sides_of_different_length_are_refused(place):
    texts = (Packed((place("a.de", "1\n2\n"),)), Packed((place("a.en", "1\n"),)))
    assert_fails(
        r"a\.en: the sides differ in length: this one has 1 sen", list, read_pairs(texts, "txt")
    )


def test_line_ends_inside_a_sentence_become_one_blank():
    assert one_line("  a \r\n b\rc\t ") == "a b c"


def test_the_progress_of_pairs_ends_at_their_number(monkeypatch):
    amounts = []
    monkeypatch.setattr(formats, "_STEP", 3)
    monkeypatch.setattr(formats, "progress", lambda *job: nullcontext(amounts.append))
    assert list(with_progress(range(8), "build it")) == list(range(8))
    assert amounts == [3, 3, 2]
