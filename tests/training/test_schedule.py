"""Learning rate schedules: the formulas, and the decay after a validation without improvement."""

import random
import re

import pytest
from copy_task import (
    assert_same_weights,
    make_recipe,
    make_trainer,
    resume,
    state_of,
    train,
    validations_of,
    write_state,
)

from synmt.training.distributed import Processes
from synmt.training.optimizer import learning_rate
from synmt.training.records import EndRecord, StepRecord

PLATEAU = {"schedule": "plateau", "best": "bleu", "warmup": 0, "log_every": 1, "validate_every": 2}


def never_better(model):
    return 1.0


RATES = """
    inverse_sqrt 50 0 0.05000005   inverse_sqrt 100 0 0.1   inverse_sqrt 400 0 0.05
    noam 50 0 0.00125   noam 400 0 0.00125   constant 50 0 0.05   constant 400 0 0.1
    inverse_sqrt 100 3 0.1   noam 400 3 0.00125   constant 400 3 0.1
    plateau 50 0 0.05   plateau 100 0 0.1   plateau 4000 0 0.1   plateau 4000 1 0.03
    plateau 4000 3 0.0027   plateau 50 1 0.015
"""


@pytest.mark.parametrize("row", re.split(r"\s{2,}", RATES.strip()))
def test_learning_rates_follow_their_formulas(row):
    schedule, *numbers = row.split()
    step, decays, expected = map(float, numbers)
    decay = {"decay": 0.3} if schedule == "plateau" else {}
    recipe = make_recipe(schedule=schedule, learning_rate=0.1, warmup=100, **decay).training
    rate = learning_rate(int(step), recipe, 16, decays=int(decays))
    assert rate == pytest.approx(expected)


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
@pytest.mark.parametrize("seed", range(5))
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
    recipe = make_recipe(**PLATEAU, patience=2)
    assert train(tmp_path, recipe, never_better)[-1] == EndRecord(6, "patience")


@pytest.mark.journey
def test_a_checkpoint_from_before_decays_were_counted_is_read(tmp_path):
    train(tmp_path, make_recipe(max_steps=4))
    state = state_of(tmp_path, 4)
    del state["decays"]
    write_state(tmp_path, 4, state)
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


@pytest.mark.journey
def test_a_run_that_its_decays_have_ended_goes_on_with_more_of_them(tmp_path):
    fewer, more = (make_recipe(**PLATEAU, max_steps=100, max_decays=count) for count in (1, 2))
    for recipe, step in ((fewer, 6), (fewer, 6), (more, 8)):
        trainer, _ = resume(tmp_path / "a", recipe, never_better)
        assert list(trainer.train())[-1] == EndRecord(step, "decays")
    train(tmp_path / "b", more, never_better)
    assert_same_weights(tmp_path / "a", tmp_path / "b")
