"""Groups of sentences are scored from kept statistics; figures show what the tables say."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from synmt.analysis.groups import (
    TENS,
    as_json,
    by_label,
    by_length,
    choose_labels,
    choose_sentences,
    collect,
    parse_edges,
    read_labels,
    tabulate,
)
from synmt.analysis.groups_plot import draw_groups, save_groups_plot
from synmt.errors import SynmtError, UsageError
from synmt.files import read_lines
from synmt.metrics import make_metric, score_system
from synmt.plots import check_plot

REFERENCES = ["Der Affe isst eine Banane.", "Er schläft.", "Die Frauen sehen den Mann im Park.", "Ja."]
HYPOTHESES = ["Der Affe isst eine  Banane.", "Er schlief.", "Die Frauen sieht den Mann im Park.", "Ja."]
BASELINE = ["Der Affe isst Banane.", "Er schläft.", "Die Frauen sieht der Mann im Park.", "Nein."]
SOURCE = ["The monkey eats a banana.", "He sleeps.", "The women see the man in the park.", "Yes."]


def table(grouping, *, baseline=True, metric="bleu"):
    made = make_metric(metric)
    second = collect(made, BASELINE, REFERENCES) if baseline else None
    return tabulate(grouping, collect(made, HYPOTHESES, REFERENCES), second)


def words(count):
    return " ".join(["word"] * count)


@pytest.mark.parametrize(
    ("length", "bucket"),
    [(1, "1-10"), (10, "1-10"), (11, "11-20"), (20, "11-20"), (50, "41-50"), (51, ">50"), (5000, ">50")],
)
def test_a_sentence_belongs_to_the_ten_that_its_length_ends(length, bucket):
    grouping = by_length([words(length)], edges=TENS)
    assert grouping.names[grouping.members[0]] == bucket


def test_an_empty_line_stands_with_the_shortest_and_the_name_says_so():
    grouping = by_length(["", words(3), words(4)], edges=[1, 3])
    assert grouping.names == ["0-1", "2-3", ">3"]
    assert grouping.members.tolist() == [0, 1, 2]
    assert by_length([words(2)], edges=[1, 3]).names == ["1", "2-3", ">3"]


def test_characters_measure_languages_without_spaces():
    grouping = by_length(["彼は走る。", "はい"], edges=[2], unit="characters")
    assert (grouping.unit, grouping.members.tolist()) == ("characters", [1, 0])


def test_each_group_scores_as_if_it_were_a_corpus_of_its_own():
    rows = table(by_length(SOURCE, edges=[2, 5])).rows
    chosen = [[1, 3], [0], [2]]
    assert [row.count for row in rows] == [2, 1, 1]
    for row, group in zip(rows, chosen, strict=True):
        alone = score_system([HYPOTHESES[n] for n in group], [REFERENCES[n] for n in group])["bleu"]
        assert row.system.score == alone.value
        base = score_system([BASELINE[n] for n in group], [REFERENCES[n] for n in group])["bleu"]
        assert row.difference.score == alone.value - base.value


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_all_groups_together_are_the_corpus(metric):
    found = table(by_label("parity", ["even", "odd"] * 2), metric=metric)
    assert found.total.system.score == score_system(HYPOTHESES, REFERENCES, [metric])[metric].value
    assert (found.total.count, found.total.share) == (4, 1.0)
    assert sum(row.share for row in found.rows) == 1


def test_an_empty_group_has_no_score():
    row = table(by_length(SOURCE)).rows[-1]
    assert (row.count, row.share, row.system, row.baseline, row.difference) == (0, 0, None, None, None)
    assert as_json(table(by_length(SOURCE)))["rows"][-1]["system"] is None


def test_accuracy_is_the_share_of_exact_translations_whatever_the_spacing():
    # by line: exact but for a space, wrong, wrong, exact; the baseline has only the second right
    found = table(by_label("kind", ["a", "a", "b", "b"]))
    assert [row.system.accuracy for row in found.rows] == [0.5, 0.5]
    assert [row.baseline.accuracy for row in found.rows] == [0.5, 0.0]
    assert found.total.difference.accuracy == 0.25
    assert collect(make_metric("bleu"), ["JA."], ["Ja."], lowercase=True).exact.tolist() == [True]


def test_labels_that_are_numbers_are_ordered_as_numbers():
    assert by_label("attractors", ["10", "9", "0", "9"]).names == ["0", "9", "10"]
    assert by_label("attractors", ["10", "9", "none", ""]).names == ["(empty)", "10", "9", "none"]


def test_buckets_are_read_and_nonsense_is_refused():
    assert parse_edges("10, 20,30") == [10, 20, 30]
    for wrong in ("", "a", "10,,20", "20,10", "10,10", "0,5", "-3"):
        with pytest.raises(UsageError, match="growing whole numbers"):
            parse_edges(wrong)


def test_labels_are_columns_by_their_names(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("phenomenon\tattractors\r\nagreement\t1\r\n\t0\r\n")
    labels = read_labels(path, 2)
    assert labels == {"phenomenon": ["agreement", ""], "attractors": ["1", "0"]}
    assert list(choose_labels(labels, ["attractors"])) == ["attractors"]
    with pytest.raises(UsageError, match=r"no label 'atractors'.*phenomenon, attractors.*'attractors'\?"):
        choose_labels(labels, ["atractors"])


SPLITS = {"split": ["seen", "length", "seen", ""], "attractors": ["0", "0", "1", "2"]}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["split=seen"], [True, False, True, False]),
        (["split!=length"], [True, False, True, True]),
        (["split!=length", "attractors!=0"], [False, False, True, True]),
        (["split=seen", "attractors=0"], [True, False, False, False]),
        (["split="], [False, False, False, True]),
        (["split!=(empty)"], [True, True, True, False]),
    ],
)
def test_sentences_are_chosen_by_all_conditions_on_their_labels(conditions, expected):
    assert choose_sentences(SPLITS, conditions).tolist() == expected


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (["split"], r"'split' is no condition\. Conditions: COLUMN=VALUE, COLUMN!=VALUE"),
        (["splt!=length"], r"no label 'splt'\. Labels: split, attractors\. Did you mean 'split'\?"),
        (["split=lenght"], r"no label 'split' is 'lenght'\. .*: \(empty\), length, seen\. Did you mean 'length'\?"),
        (["attractors=3"], r"no label 'attractors' is '3'\. Its values: 0, 1, 2\.$"),
        (["split=length", "attractors=2"], "no test sentence has split=length and attractors=2"),
    ],
)
def test_a_condition_that_chooses_nothing_is_refused(conditions, message):
    with pytest.raises(UsageError, match=message):
        choose_sentences(SPLITS, conditions)


def test_of_many_values_the_first_are_named():
    with pytest.raises(UsageError, match=r"Its values: 0, 1, .*, 19, …\.$"):
        choose_sentences({"id": [str(number) for number in range(30)]}, ["id=x"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no labels in the file"),
        ("a\tb\n1\t2\n1\n", "line 3: 1 columns, but the first row names 2"),
        ("a\ta\n1\t2\n", "line 1: two columns are named 'a'"),
        ("a\n1\n", "1 rows of labels below the header, but there are 2 test sentences"),
    ],
)
def test_labels_that_do_not_fit_are_refused(tmp_path, text, message):
    path = tmp_path / "labels.tsv"
    path.write_text(text)
    with pytest.raises(SynmtError, match=message):
        read_labels(path, 2)


def test_the_gains_of_pascal_grow_with_length(data_folder):
    folder = data_folder / "pascal-outputs" / "nc11en2de"
    if not folder.is_dir():
        pytest.skip(f"needs {folder}")
    names = ("src.tok", "truth", "transformer.preds", "transformer_pascal.preds")
    source, truth, transformer, pascal = (list(read_lines(folder / f"{name}.test.gz")) for name in names)
    metric = make_metric("bleu")
    found = tabulate(by_length(source), collect(metric, pascal, truth), collect(metric, transformer, truth))
    assert [row.count for row in found.rows] == [476, 1133, 792, 402, 138, 58]
    gains = [round(row.difference.score, 1) for row in found.rows]
    assert gains == [-1.0, 1.0, 0.2, 2.0, 1.4, 2.8]
    assert np.polyfit(range(6), gains, 1)[0] > 0.3


def test_a_plot_has_both_systems_their_differences_and_the_shares():
    found = table(by_length(SOURCE, edges=[2, 5, 7, 9]))
    above, below = draw_groups(found, system="pascal", baseline="plain").axes
    shown = {line.get_label(): list(line.get_ydata()) for line in above.get_lines()}
    full = [row for row in found.rows if row.system]
    assert shown["pascal"] == [row.system.score for row in full]
    assert shown["plain"] == [row.baseline.score for row in full]
    texts = [text.get_text().replace("−", "-") for text in above.texts]
    assert texts == [f"{row.difference.score:+.1f}" for row in full]
    assert [bar.get_height() for bar in below.patches] == [50, 25, 0, 25, 0]
    assert (above.get_ylabel(), below.get_ylabel()) == ("BLEU (points)", "Sentences (%)")
    assert below.get_xlabel() == "Source length (words)"


def test_a_plot_of_one_system_shows_its_scores():
    found = table(by_label("kind of $", ["a", "a", "b", "b"]), baseline=False, metric="ter")
    above, below = draw_groups(found, system="pascal").axes
    assert [text.get_text() for text in above.texts] == [f"{row.system.score:.1f}" for row in found.rows]
    assert above.get_ylabel() == "TER (points, lower is better)"
    assert below.get_xlabel() == "kind of $"


def test_plots_are_written_as_their_names_say_and_twice_the_same(tmp_path):
    found = table(by_label("costs $1", ["a$b$", "a", "_b", "_b"]))
    for name in ("one.svg", "two.svg", "one.png", "one.pdf"):
        save_groups_plot(found, tmp_path / name, system="pascal", baseline="plain")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    svg = (tmp_path / "one.svg").read_text()
    assert svg == (tmp_path / "two.svg").read_text()
    assert ">a$b$<" in svg
    assert ">BLEU (points)<" in svg


def test_a_plot_that_cannot_be_drawn_is_refused_at_once(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"plot.jpg: .*\.png, \.svg, \.pdf"):
        check_plot(tmp_path / "plot.jpg")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SynmtError, match=r"pip install 'synmt\[plot\]'"):
        check_plot(tmp_path / "plot.png")
