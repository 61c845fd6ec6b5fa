"""The text of a recipe from public corpora by id and from files: found, downloaded, built, drawn
and put together."""

import gzip
import hashlib
import logging
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from corpus_server import come_online, serving
from places import TESTS
from preparing import recipe_of
from public_archives import plain, sgml, table, tgz
from refusing import assert_fails, assert_refused
from resolving import resolved
from sacrebleu.dataset import DATASETS
from sentences import lines
from tiny import write_lines

from synmt.corpora import items, mtdata_index, public_text
from synmt.corpora.corpus import CorpusPart
from synmt.corpora.items import named_tests
from synmt.corpora.mixture import drawn
from synmt.corpora.resolve import estimates, find_corpus, resolve
from synmt.files.reading import read_lines
from synmt.recipe.corpus import CorpusItem
from synmt.recipe.load import check_recipe, recipe_values

pytestmark = pytest.mark.journey

COMMENTARY = "Statmt-news_commentary-16-deu-eng"
CRAWL = "Statmt-commoncrawl_wmt13-1-deu-eng"
NEWSTEST = "Statmt-newstest_ende-2016-eng-deu"
INDEX = TESTS / "mtdata-index.jsonl"
TABLE = "data.statmt.org/news-commentary/v16/training/news-commentary-v16.de-en.tsv.gz"
WMT17 = "data.statmt.org/wmt17/translation-task/test.tgz"


def news(name, sources, references, start=0):
    """Pack a test set of WMT with so many sentences."""
    sides = ("src", "en", sources), ("ref", "de", references)
    return tgz(
        {
            f"{name}-ende-{kind}.{language}.sgm": sgml(
                f"{kind}set", language, lines(language, count, start), "n", ("en", "de")
            )
            for kind, language, count in sides
        }
    )


def public_files():
    """Make the files of the public corpora of these tests, by `host/path`."""
    crawl = {
        f"commoncrawl.de-en.{language}": plain(lines(language, 20, 5)) for language in ("de", "en")
    }
    return {
        TABLE: gzip.compress(table("de", "en", 24, 0), mtime=0),
        "www.statmt.org/wmt13/training-parallel-commoncrawl.tgz": tgz(crawl),
        "data.statmt.org/wmt20/translation-task/dev.tgz": news("dev/newstest2016", 9, 9, 7),
        WMT17: news("test/newstest2017", 8, 8, 3),
    }


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve public corpora, and nothing else, to an empty cache."""
    come_online(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(mtdata_index, "_index", lambda: INDEX)
    with serving(public_files()) as running:
        monkeypatch.setenv("SYNMT_MIRROR", running.address)
        md5 = hashlib.md5(running.files[WMT17]).hexdigest()
        monkeypatch.setattr(DATASETS["wmt17"], "md5", [md5])
        yield running


@pytest.fixture
def own(tmp_path):
    """Write ten pairs of a person's own text."""
    return {
        side: str(write_lines(tmp_path / f"own.{code}", [f"{code} {n}" for n in range(10)]))
        for side, code in (("source", "en"), ("target", "de"))
    }


def recipe(**corpus):
    """Read a corpus section as from a file."""
    return recipe_of(corpus=corpus).corpus


def read(files):
    return list(read_lines(files.source)), list(read_lines(files.target))


# ids


def test_a_corpus_of_mtdata_serves_both_directions_and_is_downloaded_once(server, tmp_path):
    text = recipe(train=COMMENTARY, valid=NEWSTEST)
    there, back = resolve(text, "en", "de"), resolve(text, "de", "en")
    assert read(there.train) == (lines("en", 24), lines("de", 24)) == read(back.train)[::-1]
    assert read(there.valid) == (lines("en", 9, 7), lines("de", 9, 7))
    assert there.train.source == back.train.target
    assert there.train.source.parent == tmp_path / "cache" / "corpora" / COMMENTARY
    assert (there.name, there.parts) == (COMMENTARY, ())
    assert set(server.requests.values()) == {1}


def test_the_newest_names_of_test_sets_are_those_of_tables(server):
    text = recipe(train=COMMENTARY, valid=NEWSTEST, test=[NEWSTEST, "wmt17"])
    named = {"newstest2016": NEWSTEST, "wmt17": "wmt17"}
    assert items.test_names(text, "en", "de") == tuple(named)
    assert {name: item.id for name, item in named_tests(text).items()} == named
    others = ("wmt17/improved", "UN-un_test-1-ara-rus", "Statmt-newstest_deen-2019-deu-eng")
    assert list(map(public_text.test_name, others)) == ["wmt17_improved", "un_test", "newstest2019"]
    assert resolve(text, "en", "de").test["wmt17"].source.name == "wmt17.en"


# sacreBLEU unpacks an archive
@pytest.mark.filterwarnings("ignore:Python 3.14 will:DeprecationWarning")
def test_a_test_set_of_sacrebleu_is_what_sacrebleu_reads(server, tmp_path, monkeypatch):
    corpus = resolved(train=COMMENTARY, valid=NEWSTEST, test={"news": "wmt17"})
    own = type(DATASETS["wmt17"])(**{**vars(DATASETS["wmt17"]), "name": "wmt17"})
    own._outdir, own._rawdir = str(tmp_path), str(tmp_path / "raw")
    with serving({"x.tgz": server.files[WMT17]}) as direct:
        own.data = [f"{direct.address}/x.tgz"]
        files = own.get_source_file("en-de"), own.get_reference_files("en-de")[0]
    assert read(corpus.test["news"]) == tuple(Path(file).read_text().splitlines() for file in files)


def test_a_test_set_of_uneven_sides_is_refused(server, tmp_path, monkeypatch):
    server.files[WMT17] = news("test/newstest2017", 8, 7)
    monkeypatch.setattr(DATASETS["wmt17"], "md5", None)
    assert_fails(
        "the sides differ in length: this one has 7 sen",
        resolved,
        train=COMMENTARY,
        valid="wmt17",
    )


NOT_THERE = f"""
Statmt-news_comentary-16-deu-eng de => no corpus '.*'\\. Did you mean '{COMMENTARY}'
wmt-17 de => there is no corpus 'wmt-17'\\. There are known corpora such as nc11.*mean 'wmt17'
data/train de => no corpus 'data/train'.*files as `{{source: a\\.en, target: a\\.de}}`
{COMMENTARY} fr => the corpus {COMMENTARY} has no language pair en-fr\\. It has deu-eng
{COMMENTARY} xx => has no language pair en-xx
wmt17 fr => the test set wmt17 has no language pair en-fr\\. sacreBLEU has it for cs-en
nc11 fr => the corpus nc11 has no language pair en-fr
a-b-c-d-e de => 'a-b-c-d-e' is not an id of mtdata\\. Ids look like
"""


@pytest.mark.parametrize("case", NOT_THERE.strip().splitlines())
def test_a_corpus_that_is_not_there_is_refused_before_any_download(server, case):
    (name, language), message = case.partition(" => ")[0].split(), case.partition(" => ")[2]
    assert_refused(message, resolved, "en", language, train=[name], valid=NEWSTEST)
    assert not server.requests


def test_a_data_set_in_a_format_that_nobody_reads_is_refused(server):
    assert_fails(
        r"in a format that synmt does not read \(hfds\).*mtdata get",
        mtdata_index.find_entry,
        "Google-wmt24pp-1-eng-bul_BG",
    )


def test_what_would_be_done_is_known_before(server):
    parts = [COMMENTARY, CRAWL, {"id": COMMENTARY, "lines": 3}]
    text = recipe(train=parts, valid=NEWSTEST, test=["wmt17"])
    steps = estimates(text, "en", "de")
    assert {step.state for step in steps} == {"to do"}
    assert [step.what.split()[0] for step in steps] == ["download"] * 4 + ["build"] * 4
    assert find_corpus(text, "en", "de") is None
    corpus = resolve(text, "en", "de")
    assert estimates(text, "en", "de") == []
    assert find_corpus(text, "en", "de") == corpus
    # only the mixture has to be made
    [step] = estimates(recipe(train=[COMMENTARY, CRAWL], valid=NEWSTEST), "en", "de")
    assert step.what.startswith(f"build the text: {corpus.train.source.parents[1]}/mix-")


def test_a_step_that_would_fail_says_why(server, monkeypatch):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    steps = estimates(recipe(name="nc11", test=["wmt17"]), "en", "de")
    assert [step.state for step in steps] == ["error"] * 3 + ["to do"] * 2
    assert "3 file(s) cannot be downloaded (SYNMT_OFFLINE is set)" in str(steps[0].problem)
    [step] = estimates(recipe(name="aspec-jaen"), "en", "ja")
    assert "aspec-jaen needs files that are not on this machine" in str(step.problem)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Put nc11 into the data folder, and two files of a person beside it."""
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path))
    for split, size in (("train", 6), ("newstest2015", 2), ("newstest2016", 3), ("mine", 4)):
        for language in ("en", "de"):
            write_lines(tmp_path / "nc11" / f"{split}.{language}", [f"{split} {language}"] * size)
    paths = (str(tmp_path / "nc11" / f"mine.{language}") for language in ("en", "de"))
    return dict(zip(("source", "target"), paths, strict=True))


def sizes(corpus):
    """Name the parts of a corpus with the number of their pairs."""
    files = {"train": corpus.train, "valid": corpus.valid, **corpus.test}
    return {f"{name}: {read(one)[0][0]}": len(read(one)[0]) for name, one in files.items()}


def test_a_known_corpus_is_a_part_like_any_other(mine):
    corpus = resolved(train=[{"id": "nc11", "lines": 4}], valid="nc11", test=["nc11"])
    expected = {"train: train en": 4, "valid: newstest2015 en": 2}
    news = {"newstest2016: newstest2016 en": 3}
    assert sizes(corpus) == expected | news
    named = {name: "nc11" for name in ("newstest2015", "newstest2016", "own")}
    corpus = resolved(train="nc11", valid="nc11", test=named)
    assert [len(read(files)[0]) for files in corpus.test.values()] == [2, 3, 3]


def test_valid_and_test_replace_those_of_a_corpus_by_name(mine, tmp_path):
    whole, same = recipe(name="nc11"), recipe(train="nc11", valid="nc11", test=["nc11"])
    assert resolve(whole, "en", "de") == resolve(same, "en", "de")
    assert named_tests(whole) == named_tests(same)
    for path in tmp_path.glob("nc11/newstest2016.*"):
        path.unlink()
    # what is replaced is not built
    text = recipe(name="nc11", test={"mine": mine})
    replaced = {"train: train en": 6, "valid: newstest2015 en": 2, "mine: mine en": 4}
    assert sizes(resolve(text, "en", "de")) == replaced
    assert items.test_names(text, "en", "de") == ("mine",)
    for place in ({"name": "nc11"}, {"folder": str(tmp_path / "nc11")}):
        corpus = resolved(**place, valid=mine, test={"news": mine})
        assert (corpus.name, corpus.valid.source.name, list(corpus.test)) == (
            *("nc11", "mine.en"),
            ["news"],
        )


# several parts


def test_parts_follow_each_other_with_their_weights_and_tags(server, own):
    parts = [COMMENTARY, {"id": CRAWL, "weight": 2}, {**own, "tag": "<BT>", "weight": 0.5}]
    corpus = resolved(train=parts, valid=NEWSTEST)
    for text, code in zip(read(corpus.train), ("en", "de"), strict=True):
        assert text == lines(code, 24) + lines(code, 20, 5) + [f"{code} {n}" for n in range(10)]
    assert corpus.parts == (
        CorpusPart(COMMENTARY, 24),
        CorpusPart(CRAWL, 20, 2.0),
        CorpusPart(own["source"], 10, 0.5, "<BT>"),
    )
    assert corpus.name.startswith("mix-")


def test_other_weights_and_tags_use_the_same_text(server, own):
    one, other = (
        resolved(train=[COMMENTARY, {**own, **change}], valid=own)
        for change in ({}, {"weight": 3, "tag": "<BT>"})
    )
    assert one.train == other.train
    assert other.parts[1] == CorpusPart(own["source"], 10, 3.0, "<BT>")


def test_changed_files_make_another_text(own, empty_cache):
    text = {"train": [{**own, "lines": 5}], "valid": own}
    before = resolved(**text).train
    write_lines(Path(own["source"]), ["changed"] * 10)
    after = resolved(**text).train
    assert (after != before, read(after)[0]) == (True, ["changed"] * 5)


def test_one_part_is_not_copied_and_its_weight_is_kept(own):
    corpus = resolved(train=own, valid=own, test={"mine": own})
    weighed = resolved(train=[{**own, "tag": "<BT>"}], valid=own)
    assert (corpus.name, corpus.parts) == ("files", ())
    assert weighed.parts == (CorpusPart(own["source"], 10, 1.0, "<BT>"),)
    assert {str(one.train.source) for one in (corpus, weighed)} == {own["source"]}


def test_both_sides_can_be_of_one_language(own, empty_cache):
    corpus = resolved("en", "en", train=[own, {**own, "lines": 5}], valid=own)
    source, target = read(corpus.train)
    assert ([line.replace("en", "de") for line in source], len(source)) == (target, 15)
    assert corpus.train.target.name == "train.target.en"


# drawing


@pytest.mark.parametrize(
    ("total", "wanted"), [(1, 1), (10, 1), (10, 10), (10, 0), (200_000, 777), (70_000, 69_999)]
)
def test_exactly_as_many_pairs_are_drawn_as_wanted_and_fewer_are_part_of_them(total, wanted):
    chosen, fewer, other = (
        np.array(list(drawn(total, *how))) for how in ((wanted, 1), (wanted // 2, 1), (wanted, 2))
    )
    assert (len(chosen), chosen.sum(), fewer.sum()) == (total, wanted, wanted // 2)
    assert (fewer <= chosen).all()
    assert (chosen != other).any() or min(wanted, total - wanted) < 2


def test_every_pair_is_drawn_equally_often():
    counts = Counter(
        place for seed in range(400) for place, kept in enumerate(drawn(20, 5, seed)) if kept
    )
    # 400 draws of a quarter: 100 each, with a standard deviation of 8.7
    assert all(60 < counts[place] < 140 for place in range(20))


def test_drawn_pairs_stay_in_order_and_together(own):
    drawing = {**own, "fraction": 0.4, "seed": 7}
    corpus = resolved(train=drawing, valid={**own, "lines": 2})
    source, target = read(corpus.train)
    assert (len(source), source) == (4, sorted(source))
    assert target == [line.replace("en", "de") for line in source]
    assert len(read(corpus.valid)[0]) == 2


def test_more_pairs_than_there_are_cannot_be_drawn(own):
    assert_refused(
        r"own\.en: `lines: 11` is more than the 10 pairs that it has",
        resolved,
        train={**own, "lines": 11},
        valid=own,
    )


def test_sides_of_different_length_cannot_be_a_part(own):
    Path(own["target"]).write_text("one\n")
    assert_fails(
        r"own\.de: the sides differ in length: this one has 1 s",
        resolved,
        train=[own, own],
        valid=own,
    )


# recipes


FILES = {"source": "a.en", "target": "a.de"}
SENSELESS = """
{train: [], valid: wmt17} => give one of `name`, `folder`, or `train` with `valid`
{train: nc11} => `train` also needs `valid`
{train: {FILES, id: nc11}, valid: wmt17} => corpus.train.0: give either `id`, or `source`
{train: {weight: 2}, valid: wmt17} => corpus.train.0: give either `id`, or `source` and `target`
{train: [{FILES}, {source: a.en}], valid: wmt17} => corpus.train.1: give either `id`, or
{train: {FILES, fraction: 0.5, lines: 3}, valid: wmt17} => give `lines` or `fraction`, not both
{train: {FILES, fraction: 0}, valid: wmt17} => corpus.train.0.fraction: must be greater than 0
{train: {FILES, weight: 1000000000.0}, valid: wmt17} => corpus.train.0.weight: must be less than or
{train: {FILES, weight: -0.5}, valid: wmt17} => corpus.train.0.weight: must be greater
{train: [{id: nc11, weight: 0}], valid: wmt17} => `train` needs a `weight` above 0
{train: {FILES, lines: 3, source_parses: a}, valid: wmt17} => source_parses need files
{train: [nc11, {FILES, labels: a}], valid: wmt17} => several parts, so none can have trees or labels
{train: nc11, valid: wmt17, test: [{FILES}]} => files in `test` need a name
{train: {id: nc11, wieght: 2}, valid: wmt17} => there is no key 'corpus.train.0.wieght'
{train: [nc11, 5], valid: wmt17} => corpus.train.1: must be an object
{train: nc11, valid: nc11, test: {train: nc11}} => 'train' cannot be the name of a test set
{name: nc11, train: nc11, valid: wmt17} => here: name, train (corpus.name=null removes one)
"""
CASES = SENSELESS.replace("FILES", "source: a.en, target: a.de").strip().splitlines()
for name in ("train", "valid", "../x", "a/b", ".", ""):
    text = f"{{train: nc11, valid: nc11, test: {{'{name}': nc11}}}}"
    CASES.append(f"{text} => '{name}' cannot be the name of")
for tag in ("BT", "<B T>", "<>", "< BT>", "<BT> ", "<ＢＴ>", "<s>", "</s>", "<unk>"):
    text = f"{{train: {{id: nc11, tag: '{tag}'}}, valid: wmt17}}"
    CASES.append(f"{text} => `tag` must be letters in angle brackets")


@pytest.mark.parametrize("case", CASES)
def test_a_text_that_makes_no_sense_is_refused(case):
    text, message = case.split(" => ")
    assert_refused(re.escape(message), recipe, **yaml.safe_load(text))


@pytest.mark.parametrize("change", [{"weight": 2}, {"tag": "<BT>"}])
def test_two_tasks_and_weights_or_tags_are_refused_together(change):
    corpus = {"train": ["nc11", {"id": CRAWL, **change}], "valid": "wmt17"}
    message = r"`tasks\.parsing` needs a training text without weights and tags"
    assert_refused(message, recipe_of, corpus=corpus, tasks={"parsing": "bracketings"})


FORMS = f"""
{{train: {{source: a, target: b}}, valid: {{source: c, target: d}}, \
test: {{x: {{source: e, target: f}}}}}}
{{train: {COMMENTARY}, valid: nc11, test: wmt17}}
{{train: [{COMMENTARY}, {{id: {CRAWL}, weight: 2, lines: 5}}], valid: wmt16, test: [wmt17, wmt18]}}
"""


def test_every_form_of_a_recipe_is_read_back_from_its_values():
    for form in map(yaml.safe_load, FORMS.strip().splitlines()):
        whole = recipe_of(corpus=form)
        assert check_recipe(recipe_values(whole), where="again") == whole
    assert list(whole.corpus.test) == ["wmt17", "wmt18"]
    assert whole.corpus.train[1] == CorpusItem(id=CRAWL, weight=2.0, lines=5)


def test_two_test_sets_of_one_name_are_refused(own):
    both = ["Statmt-newstest_ende-2016-eng-deu", "Statmt-newstest_deen-2016-deu-eng"]
    assert_refused(
        r"corpus\.test: two test sets have the same name: newstest2016",
        resolved,
        train=own,
        valid=own,
        test=both,
    )


# mtdata


def test_an_id_without_mtdata_names_the_extra(server, monkeypatch):
    for module in ("mtdata", "mtdata.entry"):
        monkeypatch.setitem(sys.modules, module, None)
    assert_fails(
        r"need mtdata, which cannot be imported.*pip install 'synmt\[mtdata\]'`$",
        resolved,
        train=COMMENTARY,
        valid="wmt17",
    )


FEWER = """
import importlib
plain = importlib.import_module
def fewer(name, package=None):
    module = plain(name, package)
    if name == ".opus.opus_index":
        module.data_file = module.data_file.__class__(__file__).with_name("opus.tsv")
    elif name == ".flores":
        del module._FLORES200_LANGS[9:], module._FLORES101_LANGS[9:]
    return module
importlib.import_module = fewer
"""
"""Python runs it at its start, also in the process that makes the index: the two longest of the 20
tables of mtdata, which take most of half a minute, are short."""


def test_mtdata_makes_its_index_and_leaves_no_trace(tmp_path, tmp_path_factory):
    """It would configure the root logger, write into the home folder and run files of the working
    directory."""
    folder = tmp_path_factory.mktemp("fewer")
    (folder / "sitecustomize.py").write_text(FEWER)
    (folder / "opus.tsv").write_text("ALT\tv2019\ten\tja\nECB\tv1\tde\ten\n")
    (tmp_path / "mtdata_surprise.py").write_text("raise SystemExit('it was run')\n")
    script = (
        "import logging\nfrom synmt.corpora.mtdata_index import find_entry, same_language\n"
        f"print(find_entry('{COMMENTARY}').files[0].address)\n"
        "print(same_language('pt', 'por_BR'), same_language('zho', 'zho_Hant'))\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)\n"
    )
    home, cache = str(tmp_path), tmp_path / "cache"
    source = os.pathsep.join([str(folder), str(INDEX.parents[1])])
    variables = {"HOME": home, "PYTHONPATH": source, "PATH": "", "SYNMT_CACHE": str(cache)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True)
    assert done.stderr == ""
    printed = f"http://{TABLE}\nTrue False\n[] {logging.WARNING}\n"
    assert done.stdout == printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "mtdata_surprise.py"]
    [index] = (cache / "mtdata").glob("index-*.jsonl")
    # the entries of the other tests are what mtdata writes
    assert set(INDEX.read_bytes().splitlines()) <= set(index.read_bytes().splitlines())
