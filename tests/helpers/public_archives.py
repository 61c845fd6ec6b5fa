"""Small archives with exactly the names, folders and formats of the public ones, made from two
dozen sentences."""

import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path

import pytest
from corpus_server import CorpusServer, come_online, serving
from sentences import lines

from synmt.corpora.download import RemoteFile
from synmt.corpora.known import FILES

WMT = "data.statmt.org/wmt{}/translation-task"
MULTI30K = "raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
TANAKA = "raw.githubusercontent.com/odashi/small_parallel_enja/master"
UN = "www.un.org/dgacm/sites/www.un.org.dgacm/files/files/UNCORPUS"
WIT3 = "raw.githubusercontent.com/hlt-mt/WIT3/master/archive/2017-01-trnted/texts"
# the address in mtdata's index; the file is UNv1.0.testsets.tar.gz
UN_SETS = "drive.google.com/uc?export=download&id=13GI1F1hvwpMUGBSa0QC6ov4eE57GC_Zx"
MULTILINGUAL = "2017-01-trnmted/texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo.zip"
YANDEX = "github.com/mashashma/WMT2022-data/archive/refs/heads/main.zip"
IWSLT15 = (
    "drive.usercontent.google.com/download"
    "?id=1Mz-iiRxRqbCVbsYfKZQ6yuAxHNzYTMnI&export=download&confirm=t"
)

# where each text starts in the table of sentences: no two are equal
YANDEX_START, TALKS = 13, 17
STARTS = {"EUROPARL": 0, "CRAWL": 5, "COMMENTARY": 9, "TALKS": TALKS}
STARTS |= {"2013": 1, "2014": 2, "2015": 3, "2016": 7, "2017": 11}


# archives


def tgz(members: dict[str, bytes]) -> bytes:
    """Pack files, and their folders, as `tar czf` does; always into the same bytes."""
    packed = io.BytesIO()
    folders = dict.fromkeys(name.rpartition("/")[0] for name in members if "/" in name)
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in folders:
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(info)
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def zipped(members: dict[str, bytes]) -> bytes:
    """Pack files as `zip` does."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def parts(name: str, content: bytes, count: int) -> dict[str, bytes]:
    """Split an archive into files that end in .00, .01, …"""
    size = -(-len(content) // count)
    return {
        f"{name}.{place:02}": content[place * size : (place + 1) * size] for place in range(count)
    }


# formats


def plain(texts: list[str]) -> bytes:
    """Write one sentence a line."""
    return "".join(f"{text}\n" for text in texts).encode()


def cased(texts: list[str]) -> list[str]:
    """Cut sentences into words and escape them like the text that statmt.org prepared."""
    spaced = [re.sub(r"([.,?!%])(?= |$)", r" \1", text.replace('"', ' " ')) for text in texts]
    escaped = [
        escape(" ".join(text.split()), quote=True).replace("&#x27;", "&apos;") for text in spaced
    ]
    return [text[0].lower() + text[1:] if text.startswith("The ") else text for text in escaped]


def table(first: str, second: str, count: int, start: int) -> bytes:
    """Write two columns with a tab between them."""
    rows = zip(lines(first, count, start), lines(second, count, start), strict=True)
    return plain(["\t".join(row) for row in rows])


def segments(texts: list[str], written: str) -> str:
    """Number the sentences of a text."""
    numbered = enumerate(texts, start=1)
    return "\n".join(written.format(place, escape(text, quote=False)) for place, text in numbered)


def sgml(kind: str, language: str, texts: list[str], name: str, pair: tuple[str, str]) -> bytes:
    """Write a test set of WMT; its documents have eight sentences each."""
    system, target = (' sysid="ref"', f' trglang="{pair[1]}"') if kind == "refset" else ("", "")
    body = [f'<{kind} setid="{name}" srclang="{pair[0]}"{target}>']
    for first in range(0, len(texts), 8):
        body += [f'<doc{system} docid="paper.{first}" genre="news" origlang="{pair[0]}">', "<p>"]
        body += [segments(texts[first : first + 8], '<seg id="{}">{}</seg>'), "</p>", "</doc>"]
    return plain([*body, f"</{kind}>"])


def newstest(year: int, pairs: str) -> dict[str, bytes]:
    """Write the test sets of one year for pairs such as `ende`, source and reference."""
    members = {}
    for pair in pairs.split():
        both = source, target = pair[:2], pair[2:]
        for kind, side, language in (("srcset", "src", source), ("refset", "ref", target)):
            texts = lines(language, 20, STARTS[str(year)])
            text = sgml(kind, language, texts, f"newstest{year}", both)
            members[f"test/newstest{year}-{pair}-{side}.{language}.sgm"] = text
    return members


TALK = """\
<url>http://www.ted.com/talks/lang/{language}/talk_{number}.html</url>
<keywords>talks, art, children</keywords>
<talkid>{number}</talkid>
<title>{title}</title>
<description>TED Talk Subtitles and Transcript: {about}</description>
{text}"""
DOC = """\
<doc docid="{number}" genre="lectures">
<speaker>Speaker {number}</speaker>
{talk}
<reviewer href="http://www.ted.com/profiles/{number}">A Name</reviewer>
</doc>"""


def talk_tags(texts: list[str], language: str, doc: bool) -> bytes:
    """Write the training text of IWSLT, two talks with their tags."""
    body, half = [], len(texts) // 2
    for number, part in enumerate((texts[:half], texts[half:]), start=1):
        told = {"text": segments(part, "{1}"), "title": part[number], "about": part[number + 1]}
        talk = TALK.format(number=number, language=language, **told)
        body.append(DOC.format(number=number, talk=talk) if doc else talk)
    return plain(body)


TALK_XML = """\
<?xml version="1.0" encoding="UTF-8"?>
<mteval>
<srcset setid="{name}" srclang="{language}">
<doc docid="535" genre="lectures">
<url>http://www.ted.com/talks/535</url>
<talkid>535</talkid>
<title>{title}</title>
<description>{about}</description>
{text}
</doc>
</srcset>
</mteval>
"""


def talk_xml(texts: list[str], language: str, name: str) -> bytes:
    """Write a development or test set of IWSLT."""
    text = segments(texts, '<seg id="{}"> {} </seg>')
    title, about, *_ = texts
    told = {"name": name, "language": language, "text": text, "title": title, "about": about}
    return TALK_XML.format(**told).encode()


def talks(
    folder: str, campaign: str, pair: str, sets: dict[str, int], count: int, doc: bool = True
) -> dict[str, bytes]:
    """Write an archive of IWSLT: train.tags and one XML file per set and language."""
    members = {f"{folder}README": b"WIT3\n"}
    for language in pair.split("-"):
        members[f"{folder}train.tags.{pair}.{language}"] = talk_tags(
            lines(language, count, TALKS), language, doc
        )
        for start, (name, size) in enumerate(sets.items(), start=2):
            stem = f"{campaign}.{'TEDX' if name == 'dev2012' else 'TED'}.{name}.{pair}.{language}"
            members[f"{folder}{stem}.xml"] = talk_xml(lines(language, size, start), language, stem)
    return members


# the public files


# addresses, names inside the archives, languages, how many sentences from where in the table; of
# those that statmt.org prepares, the number is marked by a star
ARCHIVES = """
wmt16:training-parallel-nc-v11.tgz training-parallel-nc-v11/news-commentary-v11.cs-en.{} en 3+0
wmt16:training-parallel-nc-v11.tgz training-parallel-nc-v11/news-commentary-v11.de-en.{} \
de en 30+COMMENTARY
www.statmt.org/wmt13/training-parallel-europarl-v7.tgz training/europarl-v7.de-en.{} \
de en 28+EUROPARL
www.statmt.org/wmt13/training-parallel-commoncrawl.tgz commoncrawl.de-en.{} de en 26+CRAWL
www.statmt.org/wmt13/training-parallel-commoncrawl.tgz commoncrawl.ru-en.{} ru en 25+CRAWL
wmt17:training-parallel-nc-v12.tgz training/news-commentary-v12.ru-en.{} ru en 27+COMMENTARY
wmt17:preprocessed/de-en/dev.tgz newstest2013.tc.{} de en 20+2013*
wmt17:preprocessed/de-en/dev.tgz newstest2014.tc.{} de en 20+2014*
wmt17:preprocessed/de-en/dev.tgz newstest2015.tc.{} de en 20+2015*
wmt17:preprocessed/de-en/dev.tgz newstest2016.tc.{} de en 20+2016*
wmt18:preprocessed/de-en/dev.tgz newstest2015.tc.{} de en 20+2015*
wmt18:preprocessed/de-en/dev.tgz newstest2016.tc.{} de en 20+2016*
wmt18:preprocessed/de-en/dev.tgz newstest2017.tc.{} de en 20+2017*
wmt18:preprocessed/tr-en/dev.tgz newstest2016.tc.{} en tr 20+2016*
wmt18:preprocessed/tr-en/dev.tgz newstest2017.tc.{} en tr 20+2017*
UN_SETS testsets/devset/UNv1.0.devset.{} ar en fr ru zh 12+5
UN_SETS testsets/testset/UNv1.0.testset.{} ar en fr ru zh 12+9
UN/UNv1.0.6way.tar.gz 6way/UNv1.0.6way.{} ar en fr ru zh 36+2
""".replace("UN_SETS", UN_SETS)
SINGLE = """
wmt17:preprocessed/de-en/corpus.tc.{}.gz de en 40+0*
MULTI30K/train.{}.gz en de fr 30+0
MULTI30K/val.{}.gz en de fr 6+1
MULTI30K/test_2016_flickr.{}.gz en de fr 5+2
TANAKA/dev.{} en ja 6+4
TANAKA/test.{} en ja 6+8
TANAKA/train.{}.000 en ja 6+0
TANAKA/train.{}.001 en ja 6+6
TANAKA/train.{}.002 en ja 6+12
TANAKA/train.{}.003 en ja 6+18
TANAKA/train.{}.004 en ja 6+24
"""


def address_of(short: str) -> str:
    """Write an address in full."""
    for name in ("MULTI30K", "TANAKA", "UN"):
        short = short.replace(f"{name}/", f"{globals()[name]}/")
    return re.sub(r"^wmt(\d+):", lambda year: f"{WMT.format(year[1])}/", short)


def texts_of(pattern: str, languages: list[str], where: str) -> dict[str, bytes]:
    """Write a text for each language; `{}` in the name stands for the language."""
    count, start = where.rstrip("*").split("+")
    found = {name: lines(name, int(count), int(STARTS.get(start, start))) for name in languages}
    prepared = cased if where.endswith("*") else list
    return {pattern.format(name): plain(prepared(text)) for name, text in found.items()}


def moses() -> dict[str, Callable[[], bytes] | bytes]:
    """Make the archives and single files that have a sentence a line."""
    archives: dict[str, dict[str, bytes]] = {}
    for row in ARCHIVES.strip().splitlines():
        address, pattern, *languages, where = row.split()
        members = archives.setdefault(address_of(address), {})
        members |= texts_of(pattern, languages, where)
    nations = address_of("UN/UNv1.0.6way.tar.gz")
    found = parts(nations, tgz(archives.pop(nations)), 4)
    for row in SINGLE.strip().splitlines():
        pattern, *languages, where = row.split()
        for address, text in texts_of(address_of(pattern), languages, where).items():
            found[address] = gzip.compress(text, mtime=0) if address.endswith("gz") else text
    return found | {address: partial(tgz, members) for address, members in archives.items()}


def news() -> dict:
    """Make the test sets of statmt.org, its Turkish corpus, and that of Yandex."""
    yandex = {
        f"WMT2022-data-main/en-ru/en-ru.1m_{n}.tsv": table("en", "ru", 4, YANDEX_START + n)
        for n in range(1, 11)
    }
    turkish, english = (cased(lines(name, 30, STARTS["COMMENTARY"])) for name in ("tr", "en"))
    rows = plain(list(map("\t".join, zip(turkish, english, strict=True))))
    both = "ende deen enru ruen"
    return {
        "statmt.org/wmt15/test.tgz": partial(tgz, newstest(2015, "ende deen")),
        f"{WMT.format(16)}/test.tgz": partial(tgz, newstest(2016, both)),
        f"{WMT.format(17)}/test.tgz": partial(tgz, newstest(2017, both)),
        f"{WMT.format(18)}/preprocessed/tr-en/corpus.gz": gzip.compress(rows, mtime=0),
        YANDEX: partial(zipped, yandex),
    }


def all_talks() -> dict:
    """Make the archives of IWSLT 2014, 2015 and 2017."""
    fourteen = {"dev2010": 4, "dev2012": 5, "tst2010": 6, "tst2011": 4, "tst2012": 3}
    chinese = talks("en-zh/", "IWSLT15", "en-zh", {"dev2010": 7, "tst2010": 9, "tst2011": 3}, 30)
    nested = {"2015-01/texts/en/zh/en-zh.tgz": tgz(chinese), "2015-01/README": b"WIT3\n"}
    seventeen = {"dev2010": 8, "tst2010": 10, "tst2011": 3}
    multilingual = {
        **talks("DeEnItNlRo-DeEnItNlRo/", "IWSLT17", "en-it", {"dev2010": 6, "tst2010": 7}, 26),
        **talks("DeEnItNlRo-DeEnItNlRo/", "IWSLT17", "de-en", {"dev2010": 3}, 8),
    }
    return {
        "dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz": partial(
            tgz, talks("de-en/", "IWSLT14", "de-en", fourteen, 60, doc=False)
        ),
        IWSLT15: partial(tgz, nested),
        f"{WIT3}/en/de/en-de.tgz": partial(tgz, talks("en-de/", "IWSLT17", "en-de", seventeen, 32)),
        f"huggingface.co/datasets/IWSLT/iwslt2017/resolve/main/data/{MULTILINGUAL}": partial(
            zipped, multilingual
        ),
    }


def aspec() -> dict[str, bytes]:
    """Make the folder of ASPEC as its owners give it out, by path."""
    files = {}
    splits = {"dev": (6, 3, ""), "devtest": (6, 5, ""), "test": (6, 7, "")}
    splits |= {f"train-{n}": (8, 8 * n, "0.9 ||| ") for n in (1, 2, 3)}
    for name, (count, start, score) in splits.items():
        pairs = zip(lines("ja", count, start), lines("en", count, start), strict=True)
        text = [f"{score}A-82A{n:02} ||| {n} ||| {ja} ||| {en}" for n, (ja, en) in enumerate(pairs)]
        if score:
            text[0] = text[0].replace("。 |||", "。［９．１２］ |||")
        files[f"ASPEC-JE/{name.partition('-')[0]}/{name}.txt"] = plain(text)
    return files


def public_archives() -> dict:
    """Make every file that a known corpus is built from, by `host/path`."""
    return moses() | news() | all_talks()


# in place of the public servers


@contextmanager
def standing_in(patch: pytest.MonkeyPatch, cache: Path) -> Iterator[CorpusServer]:
    """Serve these files in place of all public servers, with their own sums in the lists of
    sums."""
    come_online(patch, cache)
    with serving(public_archives()) as server:
        patch.setenv("SYNMT_MIRROR", server.address)
        for address in FILES:
            patch.setitem(FILES, address, describe(server, address))
        yield server


def served(address: str) -> str:
    """Name the file that replaces the one at an address."""
    return address.partition("://")[2]


def describe(server: CorpusServer, address: str) -> RemoteFile:
    """Describe a served file as completely as the public one is described."""
    content, known = server.content(served(address)), FILES[address]
    assert content is not None, address
    sha256 = known.sha256 and hashlib.sha256(content).hexdigest()
    return RemoteFile(
        address, sha256, known.size and len(content), known.md5 and _md5(content), known.name
    )


def _md5(content: bytes | None) -> str:
    return hashlib.md5(content or b"", usedforsecurity=False).hexdigest()
