"""`synmt analyze --words` and `--ngrams`, on runs and on files."""

import re

import numpy as np
import pytest
from pages import Reader
from small_run import LSTM, PASCAL, SIZE, TEXT, make_run, write_tests
from test_cli_analyze import finish, report, run
from test_cli_analyze_groups import RECIPE
from test_word_accuracy import PAIRS, REFERENCE, SOURCE, A, B
from tiny import write_lines

from synmt.analysis.compare.words import word_attention
from synmt.analysis.forward_passes import run_forward
from synmt.analysis.options import WordOptions
from synmt.analysis.words.accuracy import WordGroups
from synmt.analysis.words.alignments import attention, most_attended, rarely_aligned
from synmt.analysis.words.report import analyze_words
from synmt.analysis.words.texts import tokenize
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.evaluation.metrics import MetricOptions
from synmt.evaluation.outputs import tokens_folder
from synmt.run_folder import Run

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("show_remarks")]

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

FILES = (
    "--hypotheses",
    "b.de",
    "--baseline",
    "a.de",
    "--references",
    "ref.de",
    "--source",
    "src.en",
)
SPACES = ("--tokenize", "none")
ALIGNED = ("--alignments", "pairs.align", "--parses", "gold.conllu")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The texts, trees and alignments as files, and two runs with the same translations."""
    for name, lines in (
        ("a.de", A),
        ("b.de", B),
        ("ref.de", REFERENCE),
        ("src.en", SOURCE),
        ("gold.conllu", TREES),
    ):
        write_lines(tmp_path / name, lines * COPIES)
    write_lines(
        tmp_path / "pairs.align",
        [" ".join(f"{s}-{t}" for s, t in pairs) for pairs in PAIRS] * COPIES,
    )
    for name, lines, when in (("plain", A, "2026-01-01"), ("pascal", B, "2026-01-02")):
        write_tests(
            Run(tmp_path / "runs" / name), SOURCE * COPIES, REFERENCE * COPIES, lines * COPIES
        )
        finish(tmp_path / "runs" / name, when, RECIPE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def by_group(table, system, measure):
    return {
        row["group"]: row["systems"][system][measure] and row["systems"][system][measure]["value"]
        for row in table["rows"]
    }


@pytest.mark.parametrize("given", [FILES, ("--baseline", "runs/plain")])
def test_source_words_are_grouped_by_their_trees_and_target_words_by_frequency(place, given):
    write_lines(place / "train.de", ["der Hund", "der Mann"])
    found = report("--words", "all", "--training-text", "train.de", *given, *SPACES, *ALIGNED)
    a, b = found["systems"]
    assert found["systems"] == (["a.de", "b.de"] if given == FILES else ["plain", "pascal"])
    frequency, tag, relation, distance, depth = found["words"]
    assert frequency["by"] == "frequency of the target word"
    # der (twice), Mann and Hund once; der: 2 of the 2 in the references of three sentences, and 1
    # by the second system
    assert by_group(frequency, a, "recall") == pytest.approx(
        {"0": 100 * 8 / 11, "1": 100.0, "2": 100.0}
    )
    assert by_group(frequency, b, "recall") == pytest.approx(
        {"0": 100 * 8 / 11, "1": 75.0, "2": 50.0}
    )
    assert tag["by"] == "part of speech of the source word"
    remarks = ["alignments: pairs.align; 94% of the source words are aligned", "trees: gold.conllu"]
    assert set(remarks) <= set(found["tables"][1]["notes"])
    # as compare-mt, but for one article that is not aligned
    assert by_group(tag, a, "recall") == pytest.approx(
        {"NOUN": 500 / 6, "DET": 60.0, "VERB": 100.0, "CCONJ": 100.0}
    )
    assert by_group(tag, b, "recall") == pytest.approx(
        {"NOUN": 500 / 6, "DET": 100.0, "VERB": 50.0, "CCONJ": 0.0}
    )
    assert [row["group"] for row in relation["rows"]] == [
        "det",
        "nsubj",
        "root",
        "obj",
        "cc",
        "conj",
    ]
    assert [row["group"] for row in distance["rows"]] == ["root", "1", "2", "3-4"]
    assert [row["text"] for row in depth["rows"]] == [3 * COPIES, 6 * COPIES, 7 * COPIES]
    compared = tag["rows"][1]["systems"][b]["recall"]
    assert compared["comparison"]["difference"] == pytest.approx(40)
    assert compared["holm_p"] >= compared["comparison"]["p_value"]


def test_a_run_whose_training_text_is_missing_is_a_warning(place, caplog):
    run("--words", "frequency", *FILES, *SPACES)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    run("--words", "frequency", "--baseline", "runs/plain", *SPACES)
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith(
        "runs/plain: the training text is not there, so words are grouped by how often the refer"
    )


def test_lines_of_a_legend_are_below_the_table_that_they_explain(place):
    shown = run("--words", "frequency,tag", *FILES, *SPACES, *ALIGNED).stdout
    _, frequency, tag = shown.split("Accuracy by ")
    assert "frequency: how often the references have the word" in frequency
    for line in ("alignments: pairs.align", "trees: gold.conllu"):
        assert (line in frequency, line in tag) == (False, True)
    # once for both
    assert ("words: between spaces" in frequency, "words: between spaces" in tag) == (True, False)


def test_source_words_are_grouped_by_their_frequency_as_in_compare_mt(place):
    found = report("--words", "frequency", "--side", "source", *FILES, *SPACES, *ALIGNED[:2])[
        "words"
    ][0]
    assert found["by"] == "frequency of the source word in the test set"
    # compare-mt, on the three sentences once: 1, 7/8, 2/5 and 1/2, 6/8, 4/5, but one of the five
    # `the` is not aligned
    assert by_group(found, "a.de", "recall") == pytest.approx({"4": 100, "5-9": 87.5, "10-99": 50})
    assert by_group(found, "b.de", "recall") == pytest.approx({"4": 50, "5-9": 75, "10-99": 100})


def test_target_words_are_grouped_by_the_trees_of_the_source_through_alignments(place):
    found = report("--words", "source-tag", *FILES, *SPACES, *ALIGNED)["words"][0]
    assert found["by"] == "part of speech of the aligned source word"
    # the word `der` of the third reference is aligned with a noun; `den` and the `die` of the third
    # are missing
    assert [(row["group"], row["text"] // COPIES) for row in found["rows"]] == [
        ("NOUN", 7),
        ("DET", 5),
        ("VERB", 4),
        ("CCONJ", 1),
    ]
    assert by_group(found, "a.de", "recall") == pytest.approx(
        {"NOUN": 600 / 7, "DET": 60, "VERB": 100, "CCONJ": 100}
    )
    assert list(found["all"]["systems"]["a.de"]) == ["recall"]
    shown = run("--words", "source-tag", *FILES, *SPACES, *ALIGNED).stdout
    assert "\nrecall: share of the reference's words that the translation has\n" in shown
    assert "F1" not in shown


def test_all_words_may_be_followed_by_more(place):
    found = report("--words", "all,source-tag,tag", *FILES, *SPACES, *ALIGNED)["words"]
    assert [one["by"].split(" of the")[0] for one in found[1:]] == [
        "part of speech",
        "relation",
        "distance to the parent",
        "depth in the tree",
        "part of speech",
    ]
    assert found[-1]["by"] == "part of speech of the aligned source word"


def test_a_model_aligns_translations_too_so_that_groups_have_precision(place):
    made = write_tests(
        make_run(place / "small", parser=False), SOURCE * COPIES, REFERENCE * COPIES, A * COPIES
    )
    asked = ("--words", "frequency,source-tag", "--run", made.folder, "--baseline", "b.de")
    frequency, tag = report(*asked, "--parses", "gold.conllu", *SPACES)["words"]
    for measure in ("precision", "recall", "f1"):
        of_all = [table["all"]["systems"]["small"][measure]["value"] for table in (frequency, tag)]
        assert of_all[0] == of_all[1]
    assert sum(row["text"] for row in tag["rows"]) == 17 * COPIES
    assert all(
        list(row["systems"]["small"]) == ["precision", "recall", "f1"] for row in tag["rows"]
    )


def test_a_run_that_tokenizes_aligns_a_file_as_words_too(place, monkeypatch):
    made = make_run(place / "letters", parser=False, text={"tokenizer": "char"})
    texts = {"source": SOURCE * COPIES, "reference": REFERENCE * COPIES, "hypothesis": A * COPIES}
    write_tests(made, *texts.values())
    tokenizers = Translator.load(made).tokenizers
    words = {name: tokenizers["source"].tokenize_lines(lines) for name, lines in texts.items()}
    for name, lines in words.items():
        write_lines(tokens_folder(made.test_folder("test")) / f"{name}.txt", lines)
    read = []

    def recorded(translator, sources, targets, *places):
        read.append([sources, targets])
        return word_attention(translator, sources, targets, *places)

    monkeypatch.setattr("synmt.analysis.words.alignments.word_attention", recorded)
    asked = (
        "--words",
        "source-tag",
        "--run",
        made.folder,
        "--baseline",
        "a.de",
        "--parses",
        "gold.conllu",
    )
    [tag] = report(*asked, *SPACES)["words"]
    # the references, the translations of the run, and the same in the file
    assert read == [
        [words["source"], words[name]] for name in ("reference", "hypothesis", "hypothesis")
    ]
    assert (
        tag["all"]["systems"]["letters"]["f1"]["value"]
        == tag["all"]["systems"]["a.de"]["f1"]["value"]
    )


def test_the_table_of_a_single_system_has_all_measures_with_intervals(place):
    shown = run("--words", "frequency", *FILES[:2], *FILES[4:], *SPACES).stdout.splitlines()
    assert shown[:3] == [
        "How well b.de translates words",
        "",
        "Accuracy by frequency of the target word in the test set",
    ]
    head = " ".join(shown[3].split("(times)")[1].split())
    assert head == "words share precision 95 % interval recall 95 % interval F1 95 % interval"
    row = next(line for line in shown if line.startswith("all")).split()
    # 12 words of the 13 that are translated, and of the 17 of the references
    assert row[1:4] == [str(17 * COPIES), "100.0%", f"{100 * 12 / 13:.1f}"]
    assert (row[5], row[7]) == ("to", f"{100 * 12 / 17:.1f}")
    for line in (
        "frequency: how often the references have the word; for that in the training text: "
        "--training-text FILE",
        "95 % interval: bootstrap of the sentences (Koehn, 2004), 1,000 resamples, seed 12345",
    ):
        assert line in shown


def test_several_systems_with_seeds_share_a_table(place):
    for name, lines in (("other-seed1.de", A), ("other-seed2.de", B)):
        write_lines(place / name, lines * COPIES)
    several = ("--hypotheses", "a.de", "b.de", "other-seed*.de", *FILES[4:], *SPACES)
    found = report("--words", "frequency", *several)
    assert found["systems"] == ["a.de", "b.de", "other-seed*.de"]
    a, b, both = (found["words"][0]["all"]["systems"][name]["f1"] for name in found["systems"])
    assert both["seeds"] == [a["value"], b["value"]]
    assert both["value"] == pytest.approx((a["value"] + b["value"]) / 2)
    assert both["comparison"]["difference"] == pytest.approx((b["value"] - a["value"]) / 2)
    shown = run("--words", "frequency", *several).stdout.splitlines()
    assert shown[0] == "How well b.de and other-seed*.de translate words, compared with a.de"
    line = next(line.split() for line in shown if line.startswith("all ") and "a.de" in line)
    of_a = found["words"][0]["all"]["systems"]["a.de"]
    assert line[4:] == [
        f"{of_a[measure]['value']:.1f}" for measure in ("precision", "recall", "f1")
    ]
    rows = [line.split() for line in shown if "other-seed*.de" in line]
    # the heading, and below each group's first line those of the other systems
    assert all(row[0] == "other-seed*.de" for row in rows[1:])
    assert any(
        "bootstrap of the sentences and of the seeds (Koehn, 2004), " in line for line in shown
    )


def test_n_grams_are_listed_with_their_score(place):
    [table] = report("--ngrams", "--top", "1", *FILES, *SPACES)["tables"]
    assert table["title"] == "n-grams that b.de gets right more or less often than a.de"
    more, less = table["rows"]
    assert (more["text"], more["system"], more["baseline"], more["reference"]) == (
        "die Frau schläft",
        4,
        0,
        4,
    )
    assert (less["text"], less["score"]) == ("der Hund sieht", pytest.approx(1 / 6))
    shown = run("--ngrams", "--top", "1", *FILES, *SPACES, "--format", "tsv").stdout.splitlines()
    assert [row.split("\t")[0] for row in shown[1:]] == ["more often", "less often"]


def test_a_page_has_a_part_for_each_table_and_a_figure_shows_all(place):
    result = run(
        "--words",
        "frequency,tag",
        "--ngrams",
        *FILES,
        *SPACES,
        *ALIGNED,
        "--html",
        "page.html",
        "--plot",
        "words.svg",
    )
    assert result.exit_code == 0, result.exception
    read = Reader((place / "page.html").read_text(encoding="utf-8"))
    headings = read.text["h2", ""]
    assert headings[0] == "Accuracy by frequency of the target word in the test set"
    assert headings[-1] == "n-grams that b.de gets right more or less often than a.de"
    # all measures of target words, recall of source words, and n-grams of both kinds
    assert (read.tags.count("table"), read.tags.count("img")) == (3 + 1 + 1, 2)
    # only the tables that alignments and trees have made name them
    frequency, tag, _ = (place / "page.html").read_text(encoding="utf-8").split("</section>")[:3]
    for made_by in ("alignments: pairs.align", "trees: gold.conllu"):
        assert (made_by in frequency, made_by in tag) == (False, True)
    drawn = (place / "words.svg").read_text(encoding="utf-8")
    for label in ("Part of speech of the source word", "from a.de", "Recall (points)", "NOUN"):
        assert f">{label}<" in drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--words", "tags", *FILES],
            "--words: there are no groups of words by 'tags'. Words are grouped by frequency, tag",
        ),
        (["--words", "tag", *FILES], "source words need alignments with the references"),
        (
            ["--words", "tag", *FILES, *ALIGNED],
            "words are those of 13a. Give tokenized text, and add `--tokenize none`",
        ),
        (
            ["--words", "tag", "--side", "target", *FILES[:4], "--references", "ref"],
            "the language of the target is unknown",
        ),
        (["--words", "tag", *FILES[:6]], "source words need the source text"),
        (
            ["--ngrams", *FILES[:2], *FILES[4:]],
            "--ngrams compares systems, but only one was given. Add `--baseline`",
        ),
        (
            ["--ngrams", "--plot", "x.svg", *FILES],
            "--plot does not apply to --ngrams. Add `--words`",
        ),
        (["--alignments", "x"], "--alignments needs --words or --ngrams"),
        (["--words", "tag,", *FILES], "there are no groups of words by ''"),
        (
            ["--words", "tag", "--training-text", "x", *FILES],
            "no group is made by frequency. Add `--words frequency`",
        ),
        (
            ["--words", "frequency", "--alignments", "x", *FILES],
            "target words need no alignments with the source",
        ),
        (
            ["--ngrams", "--alignments", "x", *FILES],
            "target words need no alignments with the source",
        ),
        (
            ["--words", "tag", "--side", "target", "--alignments", "x", *FILES],
            "target words need no alignments",
        ),
    ],
)
def test_wrong_usage_is_explained(place, arguments, message):
    write_lines(place / "ref", REFERENCE * COPIES)
    error = run(*arguments).exception
    assert error.exit_code == 2
    assert message in str(error)


def test_nothing_to_analyse_is_refused(place):
    with pytest.raises(UsageError, match="neither words nor n-grams are chosen"):
        analyze_words(WordOptions())


def test_a_model_aligns_each_reference_word_with_the_source_word_that_it_attends_to_most(tmp_path):
    made = make_run(tmp_path / "run", parser=False)
    sources, references = TEXT[:3], TEXT[3:]
    source, reference = (tokenize(lines, MetricOptions()) for lines in (sources, references))
    found = most_attended(attention(made.folder, (sources, references), source, reference))
    translator = Translator.load(made)
    for line, target, pairs in zip(sources, references, found, strict=True):
        (forward,) = run_forward(translator, [line], [target], what=("cross",))
        spans = forward.sentences[0]
        # the mean over the heads of the first of two layers
        weights = forward.captured.cross[1][0].double().mean(0).numpy()
        expected = []
        for number, word in enumerate(words_with_places(target)):
            rows = weights[pieces_of(word, spans.target, target)].sum(0)
            sums = [
                rows[pieces_of(other, spans.source, line)].sum()
                for other in words_with_places(line)
            ]
            expected.append((int(np.argmax(sums)), number))
        assert pairs == expected


def test_several_models_align_by_their_mean_attention_in_any_order(place):
    for name, model in (("one", SIZE), ("other", LSTM)):
        made = make_run(place / "models" / name, parser=False, model=model)
        write_tests(made, SOURCE * COPIES, REFERENCE * COPIES, (A if name == "one" else B) * COPIES)
    asked = ("--words", "tag", "--parses", "gold.conllu", *SPACES, "--run")
    names = ["one", "other"]
    ways = [report(*asked, *(f"models/{name}" for name in order)) for order in (names, names[::-1])]
    there, back = (found["words"][0] for found in ways)
    for row, again in zip(
        [*there["rows"], there["all"]], [*back["rows"], back["all"]], strict=True
    ):
        assert row["text"] == again["text"]
        assert all(
            row["systems"][name]["recall"]["value"] == again["systems"][name]["recall"]["value"]
            for name in names
        )
    (remark,) = (one for one in ways[0]["tables"][0]["notes"] if one.startswith("alignments: "))
    assert remark.startswith(
        "alignments: the mean attention of one and other to the source, with the reference given; "
    )


def test_a_model_that_cannot_read_the_text_does_not_align_it(place, caplog):
    for name, variants in (("reads-trees", [PASCAL]), ("plain-model", [])):
        made = make_run(place / "models" / name, *variants, parser=False)
        write_tests(made, SOURCE * COPIES, REFERENCE * COPIES, A * COPIES)
    asked = ("--words", "tag", "--parses", "gold.conllu", *SPACES, "--run", "models/reads-trees")
    found = report(*asked, "models/plain-model")
    (remark,) = (one for one in found["tables"][0]["notes"] if one.startswith("alignments: "))
    assert remark.startswith("alignments: the attention of plain-model to the source")
    assert any(
        text.startswith("a system does not help to align words: ") for text in caplog.messages
    )
    assert "or give a file: `--alignments FILE`" in str(run(*asked).exception)


def test_groups_that_are_rarely_aligned_are_named():
    numbers = [0] * 30 + [1] * 29 + [2] * 40 + [-1] * 50
    groups = WordGroups("tag", "", ["DET", "X", "PUNCT"], np.array(numbers), [], side="source")
    some = [*range(15), *range(60, 79)]
    pairs = np.array([(word, 2 * word) for word in some])
    (line,) = rarely_aligned(groups, pairs)
    assert (
        line == "less than half of the words are aligned in PUNCT (47%): their recall says little"
    )
    # a word with two alignments is one word
    assert rarely_aligned(groups, np.concatenate((pairs, [(78, 1)]))) == [line]
    assert rarely_aligned(groups, np.concatenate((pairs, [(79, 1)]))) == []


def words_with_places(line):
    """Find the words of a line, whose full stop is a separate word."""
    return [match.span() for match in re.finditer(r"[^\s.]+|\.", line)]


def pieces_of(word, spans, line):
    """Find the pieces whose first character is in a word."""
    # a lone blank belongs to the next word
    first = [
        next((place for place in range(*span) if line[place] != " "), span[1])
        for span in spans.tolist()
    ]
    return [piece for piece, place in enumerate(first) if word[0] <= place < word[1]]
