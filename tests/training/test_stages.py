"""Stages: a run makes what is missing, in order; a dry run shows the same list and makes
nothing."""

from refusing import assert_fails

from synmt.errors import SynmtError
from synmt.training.stages import Stage, estimate_all, run_stages, steps_table


class Pot(Stage[str]):
    """A stage whose result is in a dictionary; `fault` is raised when it is looked for."""

    def __init__(self, name, disk, before=None, fault=""):
        self.name, self.disk, self.before, self.fault = name, disk, before, fault

    def find(self):
        if self.fault:
            raise SynmtError(self.fault)
        return self.disk.get(self.name) if self.before is None or self.before.known else None

    def make(self):
        self.disk[self.name] = self.before.result + self.name if self.before else self.name
        return self.disk[self.name]


def pots(disk, *, fault=""):
    first = Pot("a", disk)
    second = Pot("b", disk, first, fault)
    return [first, second, Pot("c", disk, second)]


def states(stages):
    return [step.state for step in estimate_all(stages)]


def test_what_is_missing_is_made_once_in_order():
    disk = {}
    assert run_stages(pots(disk))
    assert disk == {"a": "a", "b": "ab", "c": "abc"}
    assert not run_stages(pots(disk))
    del disk["b"]
    assert run_stages(pots(disk))
    assert disk["b"] == "ab"


def test_a_dry_run_makes_nothing_and_knows_what_is_there():
    disk = {"a": "a"}
    assert states(pots(disk)) == ["done", "to do", "to do"]
    assert disk == {"a": "a"}
    run_stages(pots(disk))
    assert states(pots(disk)) == ["done"] * 3


def test_a_fault_is_shown_by_a_dry_run_with_those_of_later_stages():
    stages = [Pot("x", {}, fault="no x"), *pots({}, fault="no b")]
    shown = list(estimate_all(stages))
    assert [step.state for step in shown] == ["error", "to do", "error", "to do"]
    assert [str(step.problem) for step in shown if step.problem] == ["no x.", "no b."]
    assert_fails(r"no x\.", run_stages, stages)
    assert steps_table(shown).rows[0] == ["x", "error", ""]
