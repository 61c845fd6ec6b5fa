"""The systems of an analysis: which paths are seeds of one system, who is the baseline, what they
are called."""

import json
from pathlib import Path

import pytest
from small_run import write_tests

from synmt.analysis.systems import read_translations
from synmt.errors import SynmtError, UsageError
from synmt.run_folder import Run

SOURCE, REFERENCES = ["Yes.", "No."], ["Ja.", "Nein."]
RECIPE = (
    "name: any\nsource: en\ntarget: de\ncorpus: {{folder: data}}\ntraining: {{seed: {}, "
    "label_smoothing: {}}}\n"
)


def write(folder, *, seed=1, smoothing=0.1, references=REFERENCES):
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"format": 1, "status": "finished"}))
    (folder / "recipe.yaml").write_text(RECIPE.format(seed, smoothing))
    write_tests(Run(folder), SOURCE, references, [f"{folder.name} {one}" for one in references])


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
    ("baseline", "expected"),
    [
        (None, {"plain": PLAIN, "pascal": PASCAL}),
        ("runs/alone", {"alone": ["alone"], "plain": PLAIN, "pascal": PASCAL}),
        # a system of the list, by its name and by a pattern of the same runs
        ("runs/pascal", {"pascal": PASCAL, "plain": PLAIN}),
        ("runs/pascal-seed?", {"pascal": PASCAL, "plain": PLAIN}),
    ],
)
def test_seeds_make_systems_and_the_baseline_comes_first(runs, baseline, expected):
    paths = [Path("runs") / name for name in PLAIN + PASCAL]
    found = named(
        read_translations(paths, baseline=Path(baseline) if baseline else None, group_seeds=True)
    )
    assert list(found.items()) == list(expected.items())


def test_a_baseline_with_the_name_of_its_system_has_all_seeds_of_it(runs):
    write(runs / "alone-seed2", seed=2)
    paths = [runs / name for name in ("pascal-seed1", "alone", "alone-seed2")]
    expected = {"alone": ["alone", "alone-seed2"], "pascal-seed1": ["pascal-seed1"]}
    for baseline in (runs / "alone", Path("alone")):
        assert named(read_translations(paths, baseline=baseline, group_seeds=True)) == expected
    # as a run alone it is one more system
    assert [len(one.seeds) for one in read_translations(paths, baseline=runs / "alone")] == [
        1,
        1,
        1,
    ]


def test_without_grouping_each_run_is_a_system_and_a_pattern_is_one(runs):
    found = read_translations([runs / "plain-seed1", runs / "plain-seed2", runs / "pascal*"])
    assert named(found) == {
        "plain-seed1": ["plain-seed1"],
        "plain-seed2": ["plain-seed2"],
        "pascal*": PASCAL,
    }
    assert [one.hypothesis[0] for one in found[2].seeds] == ["pascal-seed1 Ja.", "pascal-seed2 Ja."]
    assert [one.run for one in found[2].seeds] == [runs / name for name in PASCAL]


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
    (tmp_path / "ref").write_text("Ja.\nNein.\n")
    alone = read_translations([tmp_path / "one/hyp"], references=tmp_path / "ref")
    assert named(alone) == {"hyp": ["hyp"]}


def test_a_baseline_given_alone_is_compared_with_nothing(runs):
    found = read_translations([runs / "alone"], baseline=runs / "alone")
    assert [one.seeds[0].system for one in found] == ["alone"]


def test_a_seed_of_a_system_as_the_baseline_is_that_system(runs):
    first, *others = sorted(path for path in runs.glob("plain-seed*"))
    assert others
    found = read_translations([runs / "alone", first, *others], baseline=first, group_seeds=True)
    assert [(system.name, len(system.seeds)) for system in found] == [
        ("plain", 1 + len(others)),
        ("alone", 1),
    ]


def test_systems_that_do_not_belong_together_are_refused(runs):
    write(runs / "other-seed1", smoothing=0.2, references=["Ja.", "Nie."])
    write(runs / "other-seed2", seed=2, smoothing=0.3)
    with pytest.raises(
        UsageError, match=r"not a seed of the same system .*training.label_smoothing"
    ):
        read_translations([runs / "other-seed*"])
    with pytest.raises(SynmtError, match=r"line 2 of the references differs"):
        read_translations([runs / "alone", runs / "other-seed1"])
    with pytest.raises(SynmtError, match=r"no file and no run folder matches the pattern"):
        read_translations([runs / "none*"])
    with pytest.raises(
        UsageError, match=r"the baseline is one system, not 2 \(.*pascal, .*plain\)"
    ):
        read_translations([runs / "alone"], baseline=runs / "p*", group_seeds=True)


def test_a_file_has_no_words_of_the_run_that_it_is_compared_with(tmp_path):
    write(tmp_path / "run")
    tokens = tmp_path / "run/tests/test/tokens"
    tokens.mkdir()
    for name, lines in (
        ("source", "Yes .\nNo .\n"),
        ("reference", "Ja .\nNein .\n"),
        ("hypothesis", "Ja .\nJa .\n"),
    ):
        (tokens / f"{name}.txt").write_text(lines)
    (tmp_path / "hyp").write_text("Na gut.\nNein.\n")
    file, run = (
        one.seeds[0].as_read()
        for one in read_translations([tmp_path / "run"], baseline=tmp_path / "hyp")
    )
    assert run.source == ["Yes .", "No ."]
    assert (file.source, file.reference, file.hypothesis) == (
        SOURCE,
        REFERENCES,
        ["Na gut.", "Nein."],
    )
