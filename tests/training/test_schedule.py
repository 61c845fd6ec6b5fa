"""Learning rate schedules: the formulas, and the decay after a validation without improvement."""

import json
import random

import pytest
from copy_task import (
    assert_same_weights,
    make_recipe,
    make_trainer,
    resume,
    state_of,
    train,
    validations_of,
)

from synmt.errors import UsageError
from synmt.run_folder import Run
from synmt.training.distributed import Processes
from synmt.training.optimizer import learning_rate
from synmt.training.records import EndRecord, StepRecord, ValidationRecord

PLATEAU = {"schedule": "plateau", "best": "bleu", "warmup": 0, "log_every": 1, "validate_every": 2}


def never_better(model):
    return 1.0


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
    [
        (50, 0, 0.05),
        (100, 0, 0.1),
        (4000, 0, 0.1),
        (4000, 1, 0.03),
        (4000, 3, 0.0027),
        (50, 1, 0.015),
    ],
)
def test_the_plateau_rate_is_constant_times_a_power_of_the_decay(step, decays, expected):
    recipe = make_recipe(schedule="plateau", learning_rate=0.1, warmup=100, decay=0.3).training
    assert learning_rate(step, recipe, 16, decays=decays) == pytest.approx(expected)


def test_only_the_plateau_looks_at_decays():
    for schedule in ("inverse_sqrt", "noam", "constant"):
        recipe = make_recipe(schedule=schedule).training
        assert learning_rate(7, recipe, 16, decays=3) == learning_rate(7, recipe, 16)


def expected_run(scores, recipe):
    """Go through validations one by one: the rate of every step, and where and why training
    ends."""
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


@pytest.mark.journey
@pytest.mark.parametrize("seed", range(6))
def test_the_rate_falls_after_each_validation_that_is_no_better(tmp_path, seed):
    draw = random.Random(seed)
    scores = [draw.randint(1, 9) for _ in range(7)]
    recipe = make_recipe(**PLATEAU, max_steps=14, decay=0.25, max_decays=seed % 5)
    left = iter(scores)
    records = train(tmp_path, recipe, lambda _: float(next(left)))
    rates, end = expected_run(scores, recipe.training)
    assert [r.learning_rate for r in records if isinstance(r, StepRecord)] == pytest.approx(rates)
    assert records[-1] == end


@pytest.mark.journey
def test_the_loss_is_what_the_plateau_looks_at_where_it_is_what_is_best(tmp_path):
    recipe = make_recipe(**PLATEAU | {"best": "loss"}, max_steps=100, max_decays=1)
    trainer = make_trainer(tmp_path, recipe, score=lambda _: float(trainer.state.step))
    losses = iter([4.0, 3.0, 3.5, 2.0, 2.0])
    trainer.validate = lambda: next(losses)
    records = list(trainer.train())
    # 3.5 is worse than 3.0, the second 2.0 no better than the first, though BLEU rises all the time
    assert records[-1] == EndRecord(10, "decays")


@pytest.mark.journey
def test_patience_may_end_training_before_the_last_decay(tmp_path):
    recipe = make_recipe(**PLATEAU, max_steps=100, patience=2)
    assert train(tmp_path, recipe, never_better)[-1] == EndRecord(6, "patience")


@pytest.mark.journey
def test_a_run_resumed_after_a_decay_ends_bit_for_bit_like_an_uninterrupted_one(tmp_path):
    recipe = make_recipe(**PLATEAU, max_steps=100, max_decays=2)
    whole = train(tmp_path / "whole", recipe, never_better)
    # as if killed when the validation of step 6 was logged: the newest checkpoint has one decay, of
    # step 4
    stopped = make_trainer(tmp_path / "stopped", recipe, never_better)
    next(
        record
        for record in stopped.train()
        if isinstance(record, ValidationRecord) and record.step == 6
    )
    resumed, step = resume(tmp_path / "stopped", recipe, never_better)
    assert (step, resumed.state.decays) == (4, 1)
    again = list(resumed.train())
    assert again[-1] == whole[-1] == EndRecord(8, "decays")
    rates = [
        [r.learning_rate for r in records if isinstance(r, StepRecord)]
        for records in (whole, again)
    ]
    assert rates == [[0.01] * 4 + [0.005] * 2 + [0.0025] * 2, [0.005] * 2 + [0.0025] * 2]
    assert_same_weights(tmp_path / "whole", tmp_path / "stopped")
    assert state_of(tmp_path / "whole", 8) == state_of(tmp_path / "stopped", 8)


@pytest.mark.journey
def test_a_run_that_its_decays_have_ended_goes_on_with_more_of_them(tmp_path):
    recipe = make_recipe(**PLATEAU, max_steps=100, max_decays=1)
    assert train(tmp_path / "a", recipe, never_better)[-1] == EndRecord(6, "decays")
    again, _ = resume(tmp_path / "a", recipe, never_better)
    assert list(again.train()) == [EndRecord(6, "decays")]
    more = make_recipe(**PLATEAU, max_steps=100, max_decays=2)
    longer, _ = resume(tmp_path / "a", more, never_better)
    assert list(longer.train())[-1] == EndRecord(8, "decays")
    train(tmp_path / "b", more, never_better)
    assert_same_weights(tmp_path / "a", tmp_path / "b")


@pytest.mark.journey
def test_a_checkpoint_from_before_decays_were_counted_is_read(tmp_path):
    train(tmp_path, make_recipe(max_steps=4))
    state = state_of(tmp_path, 4)
    assert state.pop("decays") == 0
    (Run(tmp_path).checkpoint(4) / "state.json").write_text(json.dumps(state))
    trainer, step = resume(tmp_path)
    assert (step, trainer.state.decays) == (4, 0)
    assert list(trainer.train())[-1] == EndRecord(8, "max_steps")


class SecondProcess(Processes):
    """The second of two, whose first finds no validation better than the ones before."""

    def __init__(self):
        super().__init__(rank=1, count=2)

    def sum(self, *values):
        return list(values) if len(values) == 2 else [0]


def test_all_processes_believe_the_first_one(tmp_path):
    recipe = make_recipe(**PLATEAU, max_steps=100, max_decays=1)
    trainer = make_trainer(tmp_path, recipe, score=lambda _: float(trainer.state.step))
    trainer.processes = SecondProcess()
    records = list(trainer.train())
    assert [r.best for r in validations_of(records)] == [False, False]
    assert records[-1] == EndRecord(4, "decays")


@pytest.mark.parametrize(("option", "value"), [("decay", 0.1), ("max_decays", 2)])
def test_options_of_the_plateau_are_refused_elsewhere(option, value):
    with pytest.raises(
        UsageError, match=f"`{option}` needs `schedule: plateau`, but the schedule is noam"
    ):
        make_recipe(schedule="noam", **{option: value})
    assert getattr(make_recipe(schedule="plateau", **{option: value}).training, option) == value
