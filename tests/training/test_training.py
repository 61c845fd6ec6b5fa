"""The training loop on a copy task: exact resume, accumulation, stopping, and what goes wrong."""

import math
import weakref
from itertools import chain, islice, takewhile
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from copy_task import (
    CopyTask,
    assert_same_weights,
    make_exact,
    make_model,
    make_recipe,
    make_trainer,
    resume,
    state_of,
    train,
    validations_of,
    write_state,
)
from refusing import assert_fails
from small import LSTM_SIZE, PIECES

from synmt.data import stream
from synmt.data.epoch import plan_batches
from synmt.data.stream import Position, Reader, prefetch
from synmt.model.weights import average_weights, load_weights, save_weights
from synmt.run_folder import Run
from synmt.training.checkpoint import regular_checkpoints
from synmt.training.distributed import Processes
from synmt.training.meter import Meter, Update
from synmt.training.optimizer import learning_rate
from synmt.training.records import EndRecord, ValidationRecord

pytestmark = pytest.mark.journey

LSTM = ({"architecture": "lstm", **LSTM_SIZE}, [{"name": "latent_tree"}])
PLATEAU = {"schedule": "plateau", "best": "bleu", "max_steps": 100, "max_decays": 1}


@pytest.mark.parametrize(
    "recipe",
    [
        make_recipe(),
        make_recipe(*LSTM),
        make_recipe(**PLATEAU, validate_every=2),
        make_recipe(optimizer="muon", ema=0.9, weight_decay=0.1),
    ],
    ids=["transformer", "lstm", "decays", "muon"],
)
def test_a_resumed_run_ends_bit_for_bit_like_an_uninterrupted_one(recipe, tmp_path):
    score = (lambda model: 1.0) if recipe.training.best == "bleu" else None
    whole = train(tmp_path / "whole", recipe, score)
    # as if killed after a validation was logged: the newest checkpoint is an earlier one
    records = make_trainer(tmp_path / "parts", recipe, score).train()
    assert any(type(record) is ValidationRecord and record.step == 4 for record in records)
    resumed, step = resume(tmp_path / "parts", recipe, score)
    assert step == 2
    assert list(resumed.train())[-1] == whole[-1]
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
    first, second = (state_of(tmp_path / name, whole[-1].step) for name in ("whole", "parts"))
    assert first == second


def test_two_accumulated_batches_equal_one_batch_of_both(tmp_path):
    recipe = make_recipe(max_steps=1, batch_tokens=40)
    whole, parts = make_trainer(tmp_path / "a", recipe), make_trainer(tmp_path / "b", recipe)
    for trainer in (whole, parts):
        make_exact(trainer)
    reader = whole.train_reader
    whole.update((reader.batch(np.arange(8)),))
    parts.update((reader.batch(np.arange(3)), reader.batch(np.arange(3, 8))))
    torch.testing.assert_close([*whole.model.parameters()], [*parts.model.parameters()])


@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
def test_it_learns_to_copy_in_half_precision_too(tmp_path, precision):
    recipe = make_recipe(
        precision=precision, max_steps=15, batch_tokens=200, validate_every=15, clip_norm=1.0
    )
    trainer = make_trainer(tmp_path, recipe)
    before = trainer.validate()
    assert validations_of(trainer.train())[-1].loss < min(before, math.log(PIECES))


def test_steps_that_fp16_skips_are_counted_and_limited():
    meter = Meter(torch.device("cpu"), overflow=True)
    losses = {"loss": torch.ones(()), "nll": torch.ones(())}

    def add(*norms):
        for norm in norms:
            meter.add(Update(1, [losses], [0], 1, 1, 0.1, torch.tensor(norm)))
        meter.read()

    add(1.0, math.inf, 1.0, math.inf)
    assert meter.record(4).skipped == 2
    # the one above is the first of them in a row
    add(*[math.inf] * 49)
    assert_fails("fp16 has skipped the last 51 steps", add, math.inf)


def test_batches_can_be_taken_up_at_any_position():
    reader = Reader(CopyTask(), make_recipe().training)
    taken = [*islice(reader.forever(Position()), 40)]
    assert taken[-1][1].epoch > 0
    for at in (3, 17, 38):
        again, _ = next(reader.forever(taken[at][1]))
        assert again.lines == taken[at + 1][0].lines


def test_the_plan_of_an_epoch_is_gone_before_the_next_one_is_made(monkeypatch):
    plans = []

    def recorded(*arguments, **options):
        # two plans of 100 million pairs would not fit into 1.5 GB
        assert not any(plan() for plan in plans)
        plan = plan_batches(*arguments, **options)
        plans.append(weakref.ref(plan[0].base))
        return plan

    monkeypatch.setattr(stream, "plan_batches", recorded)
    reader = Reader(CopyTask(), make_recipe().training)
    assert next(position for _, position in reader.forever(Position()) if position.epoch == 2)
    assert len(plans) == 3


def test_prefetch_keeps_order_and_passes_errors_on():
    def items():
        yield from range(10)
        raise KeyError("eleven")

    taken = []
    with pytest.raises(KeyError, match="eleven"):
        taken.extend(prefetch(items()))
    assert taken == list(range(10))


def stop_at(step, folder, recipe=None):
    """Train, and ask to stop when the record of a step comes; gives the last record."""
    trainer = make_trainer(folder, recipe or make_recipe(log_every=1))
    for record in trainer.train():
        if record.step == step:
            trainer.stop.set()
    return record


def test_a_request_to_stop_saves_the_step_and_the_rest_is_the_same(tmp_path):
    recipe = make_recipe(log_every=1)
    train(tmp_path / "whole", recipe)
    assert stop_at(3, tmp_path / "parts") == EndRecord(3, "interrupted")
    resumed, step = resume(tmp_path / "parts", recipe)
    assert step == 3
    list(resumed.train())
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
    # what the interruption left is no part of an average
    run = Run(tmp_path / "parts")
    assert regular_checkpoints(run, recipe.training) == [run.checkpoint(n) for n in (2, 4, 6, 8)]


def test_a_request_to_stop_in_the_last_step_leaves_the_end_to_the_next_start(tmp_path):
    assert stop_at(8, tmp_path) == EndRecord(8, "interrupted")
    resumed, _ = resume(tmp_path)
    assert list(resumed.train()) == [EndRecord(8, "max_steps")]


def test_the_cost_of_steps_before_a_stop_is_in_the_next_record(tmp_path):
    recipe = make_recipe(log_every=8)
    whole = next(record for record in train(tmp_path / "whole", recipe) if record.step == 8)
    stopped = make_trainer(tmp_path / "parts", recipe)
    stopped.update = lambda batches, update=stopped.update: stopped.stop.set() or update(batches)
    list(stopped.train())
    state = state_of(tmp_path / "parts", 1)
    cost = state["unlogged_cost"]
    # earlier versions also wrote joules
    write_state(tmp_path / "parts", 1, state | {"unlogged_cost": {**cost, "joules": None}})
    resumed, _ = resume(tmp_path / "parts", recipe)
    record = next(record for record in resumed.train() if record.step == 8)
    assert record.tokens == whole.tokens > cost["tokens"] > 0
    assert record.seconds > cost["seconds"] > 0
    assert record.tokens_per_second == pytest.approx(record.tokens / record.seconds)


def test_a_step_record_has_loss_perplexity_rate_and_memory(tmp_path):
    record = next(iter(make_trainer(tmp_path, make_recipe(label_smoothing=0)).train()))
    assert record.step == 2
    assert record.perplexity == pytest.approx(math.exp(record.loss), rel=0.05)
    assert record.learning_rate == pytest.approx(learning_rate(2, make_recipe().training, 16))
    assert record.gradient_norm > 0
    assert record.memory > 1 << 20


def test_the_processor_time_of_a_record_is_that_of_all_processes(monkeypatch):
    monkeypatch.setattr(Processes, "sum", lambda self, *values: [8_000_000])
    meter = Meter(torch.device("cpu"), processes=Processes(rank=0, count=2))
    losses = [dict.fromkeys(("loss", "nll"), torch.ones(()))]
    with meter.measuring():
        meter.add(Update(1, losses, [0], 2, 4, 0.1, torch.ones(())))
    record = meter.record(1)
    assert (record.processor_seconds, record.tokens) == (8, 4)


def test_training_stops_when_validation_does_not_get_better(tmp_path):
    recipe = make_recipe(max_steps=100, validate_every=2, best="bleu", patience=2, keep=1)
    left = iter([1.0, 5.0, 3.0, 4.0])
    records = train(tmp_path, recipe, lambda model: next(left))
    assert records[-1] == EndRecord(8, "patience")
    found = [(record.bleu, record.best) for record in validations_of(records)]
    assert found == [(1, True), (5, True), (3, False), (4, False)]
    # old checkpoints go, but the best and the last stay
    run = Run(tmp_path)
    assert run.checkpoints() == [run.checkpoint(4), run.checkpoint(8)]


def test_a_loss_or_gradient_that_is_not_finite_names_step_and_lines(tmp_path):
    broken = make_trainer(tmp_path)
    broken.model.encoder[0].feed_forward.output.bias.data.fill_(math.nan)
    assert_fails(r"training lines \d+.*gradient of step 1 is not a fin", list, broken.train())
    trainer = make_trainer(tmp_path, make_recipe(save_every=1))
    trainer.model.encoder[0].feed_forward.output.bias.register_hook(lambda slope: slope * math.nan)
    assert_fails(r"training lines \d+.*gradient of step 1 is not a finite", list, trainer.train())
    # it has not reached the weights
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
    assert not Run(tmp_path).checkpoints()


@pytest.mark.parametrize(
    "error",
    [RuntimeError("DefaultCPUAllocator: can't allocate memory"), torch.OutOfMemoryError("no")],
)
def test_running_out_of_memory_names_what_to_lower(tmp_path, monkeypatch, error):
    trainer = make_trainer(tmp_path)
    monkeypatch.setattr(trainer.model, "decode", Mock(side_effect=error))
    assert_fails(r"out of memory\. .*training\.batch_tokens", list, trainer.train())


def test_the_longest_sentences_are_tried_first(tmp_path, monkeypatch):
    trainer = make_trainer(tmp_path)
    longest = trainer.train_reader.longest().target_output
    batches = [batch.target_output for batch in trainer.train_reader.once()]
    assert all(len(batch) * batch.shape[1] ** 2 <= len(longest) * 9**2 for batch in batches)
    decode = trainer.model.decode

    def decode_short(memory, inputs, *others):
        if inputs.shape == longest.shape:
            raise torch.OutOfMemoryError("no")
        return decode(memory, inputs, *others)

    monkeypatch.setattr(trainer.model, "decode", decode_short)
    assert_fails("out of memory", list, trainer.train())
    assert trainer.state.step == 0


# batches and weights


def epoch(number, **process):
    """Read the lines of each batch of an epoch."""
    batches = Reader(CopyTask(), make_recipe().training, **process).forever(Position())
    batches = takewhile(lambda pair: pair[1].epoch <= number, batches)
    return [batch.lines for batch, position in batches if position.epoch == number]


def test_every_epoch_has_every_line_once_in_its_own_order():
    first, second = (list(chain(*epoch(number))) for number in range(2))
    assert sorted(first) == sorted(second) == list(range(60))
    assert first != second


def test_processes_share_an_epoch_without_overlap():
    parts = [epoch(0, rank=rank, processes=2) for rank in range(2)]
    lines = list(chain(*parts[0], *parts[1]))
    assert len(lines) == len(set(lines))
    assert len(parts[0]) == len(parts[1])


def test_averaged_weights_are_the_mean(tmp_path):
    model, paths = make_model(), [tmp_path / f"{name}.safetensors" for name in "abc"]
    for path, value in zip(paths[:2], (1.0, 3.0), strict=True):
        torch.nn.utils.vector_to_parameters(torch.full((10**6,), value), model.parameters())
        save_weights(model, path)
    average_weights(paths[:2], paths[2])
    load_weights(paths[2], model)
    assert all((parameter == 2).all() for parameter in model.parameters())
