"""`synmt analyze --words` and `--ngrams`, on runs and on files."""

import pytest
from analyzing import finish, report, run
from cases import cases
from pages import Reader
from small_run import LSTM, PASCAL, SIZE, make_run, write_tests
from tiny import write_lines
from word_texts import PAIRS, REFERENCE, SOURCE, A, B

from synmt.analysis.compare.words import word_attention
from synmt.decode.translator import Translator
from synmt.evaluation.outputs import tokens_folder
from synmt.run_folder import Run

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("show_remarks")]

RECIPE = "name: any\nsource: en\ntarget: de\ncorpus: {folder: data}\nevaluation: {tokenize: none}\n"
TREES = (
    "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n3\tsees\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
    "4\tthe\t_\tDET\t_\t_\t5\tdet\t_\t_\n5\tdog\t_\tNOUN\t_\t_\t3\tobj\t_\t_\n",
    "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tman\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n3\tsees\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
    "4\tthe\t_\tDET\t_\t_\t5\tdet\t_\t_\n5\twoman\t_\tNOUN\t_\t_\t3\tobj\t_\t_\n",
    "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\twoman\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
    "3\tsleeps\t_\tVERB\t_\t_\t0\troot\t_\t_\n4\tand\t_\tCCONJ\t_\t_\t7\tcc\t_\t_\n5\tthe\t_\tDET\t_\t_\t6\tdet\t_\t_\n"
    "6\tman\t_\tNOUN\t_\t_\t7\tnsubj\t_\t_\n7\tlaughs\t_\tVERB\t_\t_\t3\tconj\t_\t_\n",
)
COPIES = 4
"""How often the three sentences are repeated, so that groups have intervals."""

FILES = [
    "--hypotheses",
    "b.de",
    "--baseline",
    "a.de",
    "--references",
    "ref.de",
    "--source",
    "src.en",
]
SPACES = ("--tokenize", "none")
ALIGNED = ("--alignments", "pairs.align", "--parses", "gold.conllu")


@pytest.fixture
def place(tmp_path, monkeypatch, empty_cache):
    """The texts, trees and alignments as files, and two runs with the same translations."""
    texts = {"a.de": A, "b.de": B, "ref.de": REFERENCE, "src.en": SOURCE, "gold.conllu": TREES}
    texts["pairs.align"] = [" ".join(f"{s}-{t}" for s, t in pairs) for pairs in PAIRS]
    for name, lines in texts.items():
        write_lines(tmp_path / name, lines * COPIES)
    for name, lines, when in (("plain", A, "2026-01-01"), ("pascal", B, "2026-01-02")):
        finish(translated(Run(tmp_path / "runs" / name), lines), when, RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def translated(run, lines=A):
    """Write the test set and its translation into a run; gives its folder."""
    return write_tests(run, SOURCE * COPIES, REFERENCE * COPIES, lines * COPIES).folder


def rows_of(found, title, system):
    """List the rows of a system in the table whose title begins so."""
    [table] = [one for one in found["tables"] if one["title"].startswith(title)]
    return [row for row in table["rows"] if row["system"] == system]


def by_group(found, title, system):
    return {row["group"]: row["value"] for row in rows_of(found, title, system)[:-1]}


@pytest.mark.parametrize("given", [FILES, ("--baseline", "runs/plain")])
def test_source_words_are_grouped_by_their_trees_and_target_words_by_frequency(place, given):
    write_lines(place / "train.de", ["der Hund", "der Mann"])
    found = report("--words", "all", "--training-text", "train.de", *given, *SPACES, *ALIGNED)
    a, b = ("a.de", "b.de") if given == FILES else ("plain", "pascal")
    # der (twice), Mann and Hund once; der: 2 of the 2 in the references of three sentences, and 1
    # by the second system
    seldom = {"0": 100 * 8 / 11}
    frequent, tag = "recall by frequency", "recall by part of speech"
    assert by_group(found, frequent, a) == pytest.approx(seldom | {"1": 100.0, "2": 100.0})
    assert by_group(found, frequent, b) == pytest.approx(seldom | {"1": 75.0, "2": 50.0})
    remarks = ["alignments: pairs.align; 94% of the source words are aligned", "trees: gold.conllu"]
    assert set(remarks) <= set(found["tables"][1]["notes"])
    # as compare-mt, but for one article that is not aligned
    expected = {"NOUN": 500 / 6, "DET": 60.0, "VERB": 100.0, "CCONJ": 100.0}
    assert by_group(found, tag, a) == pytest.approx(expected)
    assert rows_of(found, tag, b)[1]["difference"] == pytest.approx(40)


def test_target_words_are_grouped_by_the_trees_of_the_source_through_alignments(place):
    found = report("--words", "source-tag", *FILES, *SPACES, *ALIGNED)
    # the word `der` of the third reference is aligned with a noun; `den` and the `die` of the third
    # are missing
    *rows, _ = rows_of(found, "recall", "a.de")
    sizes = {row["group"]: row["words"] // COPIES for row in rows}
    assert sizes == {"NOUN": 7, "DET": 5, "VERB": 4, "CCONJ": 1}
    expected = {"NOUN": 600 / 7, "DET": 60, "VERB": 100, "CCONJ": 100}
    assert by_group(found, "recall", "a.de") == pytest.approx(expected)
    assert len(found["tables"]) == 1


def test_a_model_aligns_translations_too_so_that_groups_have_precision(place):
    made = translated(make_run(place / "small", parser=False))
    asked = ("--words", "frequency,source-tag", "--run", made, "--baseline", "b.de")
    found = report(*asked, "--parses", "gold.conllu", *SPACES)
    for measure in ("precision", "recall", "F1"):
        frequency, tag = (
            rows_of(found, f"{measure} by {by}", "small") for by in ("frequency", "part of speech")
        )
        assert frequency[-1]["value"] == tag[-1]["value"]
        assert sum(row["words"] for row in tag[:-1]) == 17 * COPIES


def test_a_run_that_tokenizes_aligns_a_file_as_words_too(place, monkeypatch):
    made = make_run(place / "letters", parser=False, text={"tokenizer": "char"})
    translated(made)
    tokenizer, words, read = Translator.load(made).tokenizers["source"], {}, []
    for name, lines in (("source", SOURCE), ("reference", REFERENCE), ("hypothesis", A)):
        words[name] = tokenizer.tokenize_lines(lines * COPIES)
        write_lines(tokens_folder(made.test_folder("test")) / f"{name}.txt", words[name])

    def recorded(translator, sources, targets, *places):
        read.append([sources, targets])
        return word_attention(translator, sources, targets, *places)

    monkeypatch.setattr("synmt.analysis.words.alignments.word_attention", recorded)
    asked = ("--words", "source-tag", "--run", made.folder, "--baseline", "a.de", *ALIGNED[2:])
    found = report(*asked, *SPACES)
    # the references, the translations of the run, and the same in the file
    assert read == [
        [words["source"], words[name]] for name in ("reference", "hypothesis", "hypothesis")
    ]
    values = [rows_of(found, "F1", name)[-1]["value"] for name in ("a.de", "letters")]
    assert values[0] == values[1]


def test_n_grams_are_listed_with_their_score(place):
    [table] = report("--ngrams", "--top", "1", *FILES, *SPACES)["tables"]
    more, less = table["rows"]
    counts = {"text": "die Frau schläft", "system": 4, "baseline": 0, "reference": 4}
    assert counts.items() <= more.items()
    assert (less["text"], less["score"]) == ("der Hund sieht", pytest.approx(1 / 6))


def test_a_page_has_a_part_for_each_table_and_a_figure_shows_all(place):
    asked = ("--words", "frequency,tag", "--ngrams", *FILES, *SPACES, *ALIGNED)
    result = run(*asked, "--html", "page.html", "--plot", "words.svg")
    assert result.exit_code == 0, result.exception
    read = Reader((place / "page.html").read_text(encoding="utf-8"))
    assert read.text["h2", ""][0] == "F1 by frequency of the target word in the test set"
    # all measures of target words, recall of source words, and n-grams of both kinds
    assert (read.tags.count("table"), read.tags.count("img")) == (3 + 1 + 1, 2)
    drawn = (place / "words.svg").read_text(encoding="utf-8")
    for label in ("part of speech of the source word", "difference", "recall", "NOUN"):
        assert f">{label}<" in drawn


WRONG = """
--words tags FILES => --words: there is no kind 'tags'. Kinds: frequency, tag,
--words tag FILES => source words need alignments with the references
--words tag FILES ALIGNED => words are those of 13a. Give tokenized text, and add `--tokenize none`
--words tag --side target BARE => language of the target is unknown
--words tag BARE.de => source words need the source text
--ngrams BARE.de => compares systems, but only one was given. Add `--b
--ngrams --plot x.svg FILES => --plot does not apply to --ngrams. Add `--words`
--alignments x => --alignments needs --words or --ngrams
--words tag, FILES => there is no kind ''
--by-length --unit pieces FILES => --unit: counting pieces needs the vocabulary of a run
--by-length --buckets pascla => 'pascla' does not name or list buckets. Buckets: pascal,
--by-depth BARE.de => lengths and trees of the source need the source text
--by-depth --side target BARE => the language of the target is unknown. End the name of the
--json => no analysis is chosen. Choose one or more of --by-length or --by-depth or
--head 1.1 => --head needs --trees or --attention. Add one of them.
--by-length --html x.txt => x.txt: not an HTML file name. Endings: .html, .htm.
ref => LABELS.tsv needs GROUPED. Add one of them.
--gates --cased => --lowercase/--cased needs GROUPED or
--trees --by-length --plot x.png => one analysis at a time can read standard input, or draw
--by-length --test tset => there is no test set 'tset'. Test sets: test. Did you mean 'test'?
--by-length --plot x.bmp => unsupported picture format
--by-length --top 5 => --top needs --compare or --words or --ngrams. Add one of them.
--by-length --ngrams --hypotheses - h --references r => one analysis at a time can read
--by-length --trees --run a b => --trees is about one run
--by-length --hypotheses ref => the reference is missing
--by-length --hypotheses h --test t => cannot be combined with a run
"""
GROUPED = (
    "--by-length or --by-depth or --by-distance or --by-arity or --by-projectivity or --by-entropy "
    "or --by-relation or --by-label"
)


@pytest.mark.parametrize(("arguments", "message"), cases(WRONG))
def test_wrong_usage_is_explained(place, arguments, message):
    write_lines(place / "ref", REFERENCE * COPIES)
    bare = "--hypotheses b.de --references ref"
    for name, value in (("FILES", " ".join(FILES)), ("ALIGNED", " ".join(ALIGNED)), ("BARE", bare)):
        arguments = arguments.replace(name, value)
    error = run(*arguments.split()).exception
    assert error.exit_code == 2
    assert message.replace("GROUPED", GROUPED) in str(error)


def test_several_models_align_by_their_mean_attention_in_any_order(place):
    for name, model, lines in (("one", SIZE, A), ("other", LSTM, B)):
        translated(make_run(place / "models" / name, parser=False, model=model), lines)
    asked = ("--words", "tag", "--parses", "gold.conllu", *SPACES, "--run")
    there = report(*asked, "models/one", "models/other")
    back = report(*asked, "models/other", "models/one")
    for name in ("one", "other"):
        assert by_group(there, "recall", name) == by_group(back, "recall", name)
    remark = "alignments: attention to the source, with the reference given, of one, other"
    assert remark in " ".join(there["tables"][0]["notes"])


def test_a_model_that_cannot_read_the_text_does_not_align_it(place, caplog):
    for name, variants in (("reads-trees", [PASCAL]), ("plain-model", [])):
        translated(make_run(place / "models" / name, *variants, parser=False))
    asked = ("--words", "tag", "--parses", "gold.conllu", *SPACES, "--run", "models/reads-trees")
    found = report(*asked, "models/plain-model")
    remark = "alignments: attention to the source, with the reference given, of plain-model"
    assert remark in " ".join(found["tables"][0]["notes"])
    assert "reads-trees does not help to align words: " in caplog.text
    assert "Give them as `--alignments FILE`" in str(run(*asked).exception)
