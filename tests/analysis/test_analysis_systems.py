"""The systems of an analysis: which paths are seeds of one system, who is the baseline, what they
are called."""

from pathlib import Path

import pytest
from analyzing import finish
from cases import cases
from refusing import assert_fails, assert_refused
from small_run import write_tests
from tiny import write_lines

from synmt.analysis.inputs import read_translations
from synmt.run_folder import Run

SOURCE, REFERENCES = ["Yes.", "No."], ["Ja.", "Nein."]
RECIPE = (
    "name: any\nsource: en\ntarget: de\ncorpus: {{folder: data}}\ntraining: {{seed: {}, "
    "label_smoothing: {}}}\n"
)


def write(folder, *, seed=1, smoothing=0.1, references=REFERENCES):
    hypotheses = [f"{folder.name} {one}" for one in references]
    write_tests(Run(folder), SOURCE, references, hypotheses)
    finish(folder, recipe=RECIPE.format(seed, smoothing))


@pytest.fixture
def runs(tmp_path, monkeypatch):
    for system in ("plain", "pascal"):
        for seed in (1, 2):
            write(tmp_path / "runs" / f"{system}-seed{seed}", seed=seed)
    write(tmp_path / "runs" / "alone")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def named(systems):
    return {one.name: [seed.system for seed in one.seeds] for one in systems}


PLAIN, PASCAL = ["plain-seed1", "plain-seed2"], ["pascal-seed1", "pascal-seed2"]


@pytest.mark.parametrize(
    ("baseline", "order"),
    [
        (None, ["plain", "pascal"]),
        ("runs/alone", ["alone", "plain", "pascal"]),
        # a system of the list, by its name and by a pattern of the same runs
        ("runs/pascal", ["pascal", "plain"]),
        ("runs/pascal-seed?", ["pascal", "plain"]),
    ],
)
def test_seeds_make_systems_and_the_baseline_comes_first(runs, baseline, order):
    paths = [Path("runs") / name for name in PLAIN + PASCAL]
    given = Path(baseline) if baseline else None
    found = named(read_translations(paths, baseline=given, group_seeds=True))
    every = {"plain": PLAIN, "pascal": PASCAL, "alone": ["alone"]}
    assert list(found.items()) == [(name, every[name]) for name in order]


def test_a_baseline_with_the_name_of_its_system_has_all_seeds_of_it(runs):
    write(runs / "alone-seed2", seed=2)
    paths = [runs / name for name in ("pascal-seed1", "alone", "alone-seed2")]
    expected = {"alone": ["alone", "alone-seed2"], "pascal-seed1": ["pascal-seed1"]}
    for baseline in (runs / "alone", Path("alone")):
        assert named(read_translations(paths, baseline=baseline, group_seeds=True)) == expected
    # as a run alone it is one more system
    assert len(named(read_translations(paths, baseline=runs / "alone"))) == 3


def test_files_and_runs_mix_and_equal_names_become_paths(runs, tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "hyp").write_text("Ja.\nJa.\n")
    files = [tmp_path / "one/hyp", tmp_path / "two/hyp"]
    # the run says what the references are, in any place of the list
    found = read_translations([*files, runs / "alone"])
    assert [one.name for one in found] == [*map(str, files), str(runs / "alone")]
    assert [one.seeds[0].run for one in found] == [None, None, runs / "alone"]
    assert all(one.seeds[0].reference == REFERENCES for one in found)


APART = r"""
other-seed* => not a seed of the same system .*training.label_smoothing
alone other-seed1 => its test set 'test' is not that of
none* => no such file or run folder
"""


def test_systems_that_do_not_belong_together_are_refused(runs):
    write(runs / "other-seed1", smoothing=0.2, references=["Ja.", "Nie."])
    write(runs / "other-seed2", seed=2, smoothing=0.3)
    for names, message in cases(APART):
        assert_fails(message, read_translations, [runs / name for name in names.split()])
    assert_refused(
        r"must be one system, not .*pascal, .*plain",
        read_translations,
        [runs / "alone"],
        baseline=runs / "p*",
        group_seeds=True,
    )


def test_a_file_has_no_words_of_the_run_that_it_is_compared_with(tmp_path):
    write(tmp_path / "run")
    texts = {
        "source": ["Yes .", "No ."],
        "reference": ["Ja .", "Nein ."],
        "hypothesis": ["Ja ."] * 2,
    }
    for name, lines in texts.items():
        write_lines(tmp_path / "run/tests/test/tokens" / f"{name}.txt", lines)
    hypothesis = ["Na gut.", "Nein."]
    baseline = write_lines(tmp_path / "hyp", hypothesis)
    systems = read_translations([tmp_path / "run"], baseline=baseline)
    file, run = (one.seeds[0].as_read() for one in systems)
    assert run.source == texts["source"]
    assert [file.source, file.reference, file.hypothesis] == [SOURCE, REFERENCES, hypothesis]
