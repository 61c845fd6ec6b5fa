"""Learning rate schedules: the formulas, and the decay after a validation without improvement."""

import json
import random

import pytest
import torch
from test_training import make_recipe, make_trainer, weights

from synmt.errors import UsageError
from synmt.run import Run
from synmt.training.distributed import Processes
from synmt.training.records import EndRecord, StepRecord, ValidationRecord
from synmt.training.schedule import learning_rate

PLATEAU = {"schedule": "plateau", "best": "bleu", "warmup": 0, "log_every": 1, "validate_every": 2}


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [
        ("inverse_sqrt", 50, 1e-7 + (0.1 - 1e-7) / 2),
        ("inverse_sqrt", 100, 0.1),
        ("inverse_sqrt", 400, 0.05),
        ("noam", 50, 0.1 * 16**-0.5 * 50 * 100**-1.5),
        ("noam", 400, 0.1 * 16**-0.5 / 20),
        ("constant", 50, 0.05),
        ("constant", 400, 0.1),
    ],
)
def test_learning_rates_follow_their_formulas(schedule, step, expected):
    recipe = make_recipe(schedule=schedule, learning_rate=0.1, warmup=100).training
    assert learning_rate(step, recipe, 16) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("step", "decays", "expected"),
    [(50, 0, 0.05), (100, 0, 0.1), (4000, 0, 0.1), (4000, 1, 0.03), (4000, 3, 0.0027), (50, 1, 0.015)],
)
def test_the_plateau_rate_is_constant_times_a_power_of_the_decay(step, decays, expected):
    recipe = make_recipe(schedule="plateau", learning_rate=0.1, warmup=100, decay=0.3).training
    assert learning_rate(step, recipe, 16, decays=decays) == pytest.approx(expected)


def test_only_the_plateau_looks_at_decays():
    for schedule in ("inverse_sqrt", "noam", "constant"):
        recipe = make_recipe(schedule=schedule).training
        assert learning_rate(7, recipe, 16, decays=3) == learning_rate(7, recipe, 16)


def expected_run(scores, recipe):
    """Go through validations one by one: the rate of every step, and where and why training ends."""
    rates, rate, best, lowered = [], recipe.learning_rate, None, 0
    for number, score in enumerate(scores, start=1):
        rates += [rate] * recipe.validate_every
        if best is None or score > best:
            best = score
        elif lowered == recipe.max_decays:
            return rates, EndRecord(number * recipe.validate_every, "decays")
        else:
            rate, lowered = rate * recipe.decay, lowered + 1
    return rates, EndRecord(len(rates), "max_steps")


@pytest.mark.parametrize("seed", range(6))
def test_the_rate_falls_after_each_validation_that_is_no_better(tmp_path, seed):
    draw = random.Random(seed)
    scores = [draw.randint(1, 9) for _ in range(7)]
    recipe = make_recipe(**PLATEAU, max_steps=14, decay=0.25, max_decays=seed % 5)
    left = iter(scores)
    records = list(make_trainer(tmp_path, recipe, score=lambda _: float(next(left))).train())
    rates, end = expected_run(scores, recipe.training)
    assert [r.learning_rate for r in records if isinstance(r, StepRecord)] == pytest.approx(rates)
    assert records[-1] == end


def test_the_loss_is_what_the_plateau_looks_at_where_it_is_what_is_best(tmp_path):
    recipe = make_recipe(**PLATEAU | {"best": "loss"}, max_steps=100, max_decays=1)
    trainer = make_trainer(tmp_path, recipe, score=lambda _: float(trainer.state.step))
    losses = iter([4.0, 3.0, 3.5, 2.0, 2.0])
    trainer.validate = lambda: next(losses)
    records = list(trainer.train())
    # 3.5 is worse than 3.0, the second 2.0 no better than the first, though BLEU rises all the time
    assert records[-1] == EndRecord(10, "decays")


def test_patience_may_end_training_before_the_last_decay(tmp_path):
    recipe = make_recipe(**PLATEAU, max_steps=100, patience=2)
    assert list(make_trainer(tmp_path, recipe, score=lambda _: 1.0).train())[-1] == EndRecord(6, "patience")


def stop_after_a_decay(folder, recipe):
    """Train as if killed when the validation of step 6 was logged: the newest checkpoint has one decay, of step 4."""
    stopped = make_trainer(folder, recipe, score=lambda _: 1.0)
    for record in stopped.train():
        if isinstance(record, ValidationRecord) and record.step == 6:
            return
    raise AssertionError("never came to step 6")


def test_a_run_resumed_after_a_decay_ends_bit_for_bit_like_an_uninterrupted_one(tmp_path):
    recipe = make_recipe(**PLATEAU, max_steps=100, max_decays=2)
    whole = list(make_trainer(tmp_path / "whole", recipe, score=lambda _: 1.0).train())
    stop_after_a_decay(tmp_path / "stopped", recipe)
    resumed = make_trainer(tmp_path / "stopped", recipe, score=lambda _: 1.0)
    assert (resumed.resume(), resumed.state.decays) == (4, 1)
    again = list(resumed.train())
    assert again[-1] == whole[-1] == EndRecord(8, "decays")
    rates = [[r.learning_rate for r in records if isinstance(r, StepRecord)] for records in (whole, again)]
    assert rates == [[0.01] * 4 + [0.005] * 2 + [0.0025] * 2, [0.005] * 2 + [0.0025] * 2]
    before, after = weights(tmp_path / "whole"), weights(tmp_path / "stopped")
    assert all(torch.equal(before[name], after[name]) for name in before | after)
    states = [(Run(tmp_path / name).checkpoint(8) / "state.json").read_text() for name in ("whole", "stopped")]
    assert json.loads(states[0]) == json.loads(states[1])


def test_a_run_that_its_decays_have_ended_goes_on_with_more_of_them(tmp_path):
    recipe = make_recipe(**PLATEAU, max_steps=100, max_decays=1)
    assert list(make_trainer(tmp_path / "a", recipe, score=lambda _: 1.0).train())[-1] == EndRecord(6, "decays")
    again = make_trainer(tmp_path / "a", recipe, score=lambda _: 1.0)
    again.resume()
    assert list(again.train()) == [EndRecord(6, "decays")]
    more = make_recipe(**PLATEAU, max_steps=100, max_decays=2)
    longer = make_trainer(tmp_path / "a", more, score=lambda _: 1.0)
    longer.resume()
    assert list(longer.train())[-1] == EndRecord(8, "decays")
    list(make_trainer(tmp_path / "b", more, score=lambda _: 1.0).train())
    one, other = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert all(torch.equal(one[name], other[name]) for name in one | other)


def test_a_checkpoint_from_before_decays_were_counted_is_read(tmp_path):
    list(make_trainer(tmp_path, make_recipe(max_steps=4)).train())
    path = Run(tmp_path).checkpoint(4) / "state.json"
    state = json.loads(path.read_text())
    assert state.pop("decays") == 0
    path.write_text(json.dumps(state))
    trainer = make_trainer(tmp_path)
    assert (trainer.resume(), trainer.state.decays) == (4, 0)
    assert list(trainer.train())[-1] == EndRecord(8, "max_steps")


class SecondProcess(Processes):
    """The second of two, whose first finds no validation better than the ones before."""

    def __init__(self):
        super().__init__(rank=1, count=2)

    def sum(self, *values):
        return list(values) if len(values) == 2 else [0]

    def sum_gradients(self, model):
        pass


def test_all_processes_believe_the_first_one(tmp_path):
    recipe = make_recipe(**PLATEAU, max_steps=100, max_decays=1)
    trainer = make_trainer(tmp_path, recipe, score=lambda _: float(trainer.state.step))
    trainer.processes = SecondProcess()
    records = list(trainer.train())
    assert [r.best for r in records if isinstance(r, ValidationRecord)] == [False, False]
    assert records[-1] == EndRecord(4, "decays")


@pytest.mark.parametrize(("option", "value"), [("decay", 0.1), ("max_decays", 2)])
def test_options_of_the_plateau_are_refused_elsewhere(option, value):
    with pytest.raises(UsageError, match=f"`{option}` needs `schedule: plateau`, but the schedule is noam"):
        make_recipe(schedule="noam", **{option: value})
    assert getattr(make_recipe(schedule="plateau", **{option: value}).training, option) == value
