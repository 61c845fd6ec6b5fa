"""The training loop on a copy task: exact resume, accumulation, stopping, and what goes wrong."""

import math
import sys
import weakref
from itertools import islice, takewhile
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
)
from small import LSTM_SIZE, PIECES

from synmt.data import stream
from synmt.data.batch_plan import plan_batches
from synmt.data.stream import Position, Reader, prefetch
from synmt.errors import SynmtError
from synmt.model.weights import average_weights, load_weights, save_weights
from synmt.run import Run
from synmt.training.checkpoint import regular_checkpoints
from synmt.training.distributed import Processes
from synmt.training.meter import Meter, Update, peak_memory
from synmt.training.optimizer import learning_rate
from synmt.training.records import EndRecord, StepRecord, ValidationRecord

pytestmark = pytest.mark.journey


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_resumed_run_ends_bit_for_bit_like_an_uninterrupted_one(architecture, tmp_path):
    recipe = make_recipe()
    if architecture == "lstm":
        recipe = make_recipe({"architecture": "lstm", **LSTM_SIZE}, [{"name": "latent_tree"}])
    train(tmp_path / "whole", recipe)
    # as if killed after the validation of step 4 was logged: the newest checkpoint is that of step
    # 2
    stopped = make_trainer(tmp_path / "stopped", recipe)
    next(record for record in stopped.train() if isinstance(record, ValidationRecord))
    resumed, step = resume(tmp_path / "stopped", recipe)
    assert step == 2
    list(resumed.train())
    assert_same_weights(tmp_path / "whole", tmp_path / "stopped")
    assert state_of(tmp_path / "whole", 8) == state_of(tmp_path / "stopped", 8)


def test_asking_to_stop_saves_the_step_and_the_rest_is_the_same(tmp_path):
    train(tmp_path / "whole")
    asked = make_trainer(tmp_path / "asked", make_recipe(log_every=1))
    records = []
    for record in asked.train():
        records.append(record)
        if isinstance(record, StepRecord) and record.step == 3:
            asked.stop.set()
    assert records[-1] == EndRecord(3, "interrupted")
    resumed, step = resume(tmp_path / "asked")
    assert step == 3
    list(resumed.train())
    assert_same_weights(tmp_path / "whole", tmp_path / "asked")


def test_asking_to_stop_in_the_last_step_leaves_the_end_to_the_next_start(tmp_path):
    asked = make_trainer(tmp_path)
    for record in asked.train():
        if record.step == 8:
            asked.stop.set()
    assert record == EndRecord(8, "interrupted")
    resumed, _ = resume(tmp_path)
    assert list(resumed.train()) == [EndRecord(8, "max_steps")]


def test_the_cost_of_steps_before_a_stop_is_in_the_next_record(tmp_path):
    recipe = make_recipe(log_every=8)
    whole = train(tmp_path / "whole", recipe)[-3]
    asked = make_trainer(tmp_path / "asked", recipe)
    stream, step = asked.train(), asked.update

    def update(batches):
        asked.stop.set()
        return step(batches)

    asked.update = update
    list(stream)
    cost = state_of(tmp_path / "asked", 1)["unlogged_cost"]
    assert cost["tokens"] > 0
    assert cost["seconds"] > 0
    # earlier versions also wrote joules
    state = tmp_path / "asked" / "checkpoints" / "step-00000001" / "state.json"
    state.write_text(
        state.read_text().replace('"unlogged_cost": {', '"unlogged_cost": {"joules": null,')
    )
    resumed, _ = resume(tmp_path / "asked", recipe)
    record = next(record for record in resumed.train() if isinstance(record, StepRecord))
    assert record.tokens == whole.tokens
    assert record.seconds > cost["seconds"]
    assert record.tokens_per_second == pytest.approx(record.tokens / record.seconds)


def test_a_checkpoint_that_an_interruption_left_is_no_part_of_the_average(tmp_path):
    recipe = make_recipe(log_every=1)
    asked = make_trainer(tmp_path / "run", recipe)
    for record in asked.train():
        if record.step == 3:
            asked.stop.set()
    list(resume(tmp_path / "run", recipe)[0].train())
    names = [folder.name for folder in regular_checkpoints(Run(tmp_path / "run"), recipe.training)]
    assert names == ["step-00000002", "step-00000004", "step-00000006", "step-00000008"]


def test_two_accumulated_batches_equal_one_batch_of_both(tmp_path):
    recipe = make_recipe(max_steps=1, batch_tokens=40)
    whole, parts = make_trainer(tmp_path / "a", recipe), make_trainer(tmp_path / "b", recipe)
    for trainer in (whole, parts):
        make_exact(trainer)
    reader = whole.train_reader
    whole.update((reader.batch(np.arange(8)),))
    parts.update((reader.batch(np.arange(3)), reader.batch(np.arange(3, 8))))
    torch.testing.assert_close([*whole.model.parameters()], [*parts.model.parameters()])


def test_it_learns_to_copy(tmp_path):
    recipe = make_recipe(max_steps=60, batch_tokens=200, warmup=10, validate_every=30)
    records = validations_of(train(tmp_path, recipe))
    assert records[-1].loss < records[0].loss < math.log(PIECES)


def test_the_log_tells_loss_perplexity_rate_and_speed(tmp_path):
    record = next(r for r in make_trainer(tmp_path).train() if isinstance(r, StepRecord))
    assert record.step == 2
    assert record.perplexity == pytest.approx(math.exp(math.log(record.perplexity)))
    assert record.learning_rate == pytest.approx(learning_rate(2, make_recipe().training, 16))
    assert record.tokens_per_second > 0
    assert record.gradient_norm > 0
    assert record.memory > 1 << 20


def test_training_stops_when_validation_does_not_get_better(tmp_path):
    values = iter([1.0, 5.0, 3.0, 4.0, 2.0, 9.0])
    recipe = make_recipe(max_steps=100, validate_every=2, best="bleu", patience=2)
    records = train(tmp_path, recipe, lambda model: next(values))
    assert records[-1] == EndRecord(8, "patience")
    assert [(r.bleu, r.best) for r in validations_of(records)] == [
        (1.0, True),
        (5.0, True),
        (3.0, False),
        (4.0, False),
    ]
    assert Run(tmp_path).weights_of("best") == Run(tmp_path).checkpoint(4) / "model.safetensors"


def test_old_checkpoints_go_but_the_best_and_the_last_stay(tmp_path):
    values = iter([9.0, 1.0, 2.0, 3.0])
    recipe = make_recipe(validate_every=2, best="bleu", keep=1, average=2)
    train(tmp_path, recipe, lambda model: next(values))
    run = Run(tmp_path)
    assert [folder.name for folder in run.checkpoints()] == [
        "step-00000002",
        "step-00000006",
        "step-00000008",
    ]
    optimizers = [
        folder.name for folder in run.checkpoints() if (folder / "optimizer.safetensors").exists()
    ]
    assert optimizers == ["step-00000008"]


def test_a_loss_that_is_not_finite_names_step_and_lines(tmp_path):
    trainer = make_trainer(tmp_path)
    with torch.no_grad():
        trainer.model.encoder[0].feed_forward.output.bias.fill_(math.nan)
    with pytest.raises(SynmtError, match=r"training lines \d+.*step 1 is not a finite number"):
        list(trainer.train())


def test_a_gradient_that_is_not_finite_stops_before_it_reaches_the_weights(tmp_path):
    trainer = make_trainer(tmp_path, make_recipe(save_every=1))
    trainer.model.encoder[0].feed_forward.output.bias.register_hook(lambda slope: slope * math.nan)
    with pytest.raises(
        SynmtError, match=r"training lines \d+.*gradient of step 1 is not a finite number"
    ):
        list(trainer.train())
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
    assert not Run(tmp_path).checkpoints()


def test_a_system_that_does_not_tell_its_memory_is_no_error(monkeypatch):
    monkeypatch.setattr("pathlib.Path.exists", lambda path: False)
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory(torch.device("cpu")) == 0


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"
            ),
            "a batch",
        ),
        (
            torch.OutOfMemoryError("no"),
            r"a batch of \d+ sentences, \d+ source and \d+ target pieces\. Lower training",
        ),
    ],
    ids=["on a CPU", "on a GPU"],
)
def test_running_out_of_memory_names_the_batch_and_what_to_lower(
    tmp_path, monkeypatch, error, message
):
    trainer = make_trainer(tmp_path)
    monkeypatch.setattr(trainer.model, "decode", Mock(side_effect=error))
    with pytest.raises(SynmtError, match=f"out of memory with {message}"):
        list(trainer.train())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains_too(tmp_path, precision):
    recipe = make_recipe(
        precision=precision, max_steps=30, batch_tokens=200, validate_every=30, clip_norm=1.0
    )
    trainer = make_trainer(tmp_path, recipe)
    before = trainer.validate()
    assert validations_of(trainer.train())[-1].loss < before


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
        plans.append(weakref.ref(plan))
        return plan

    monkeypatch.setattr(stream, "plan_batches", recorded)
    reader = Reader(CopyTask(), make_recipe().training)
    assert next(position for _, position in reader.forever(Position()) if position.epoch == 2)
    assert len(plans) == 3


def test_every_epoch_has_every_line_once_in_its_own_order():
    reader = Reader(CopyTask(), make_recipe().training)
    epochs = {}
    for batch, position in reader.forever(Position()):
        if position.epoch > 1:
            break
        epochs.setdefault(position.epoch, []).extend(batch.lines)
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(60))
    assert epochs[0] != epochs[1]


def test_processes_share_an_epoch_without_overlap():
    readers = [
        Reader(CopyTask(), make_recipe().training, rank=rank, processes=2) for rank in range(2)
    ]
    seen = [
        [batch.lines for batch, _ in takewhile(in_first_epoch, reader.forever(Position()))]
        for reader in readers
    ]
    flat = [line for lines in seen for batch in lines for line in batch]
    assert len(flat) == len(set(flat))
    assert len(seen[0]) == len(seen[1])


def in_first_epoch(item):
    return item[1].epoch == 0


def test_prefetch_keeps_order_and_passes_errors_on():
    def items():
        yield from range(10)
        raise KeyError("eleven")

    taken = []
    with pytest.raises(KeyError, match="eleven"):
        taken.extend(prefetch(items()))
    assert taken == list(range(10))


def test_averaged_weights_are_the_mean(tmp_path):
    model = make_model()
    for index, value in enumerate((1.0, 3.0)):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(value)
        save_weights(model, tmp_path / f"{index}.safetensors")
    average_weights(
        [tmp_path / "0.safetensors", tmp_path / "1.safetensors"], tmp_path / "mean.safetensors"
    )
    load_weights(tmp_path / "mean.safetensors", model)
    assert all((parameter == 2).all() for parameter in model.parameters())


def test_weights_of_another_model_are_refused(tmp_path):
    save_weights(make_model(), tmp_path / "model.safetensors")
    with pytest.raises(SynmtError, match=r"broken.*has the shape"):
        load_weights(tmp_path / "model.safetensors", make_model(pieces=PIECES + 1))


def test_a_cut_off_file_of_weights_is_refused(tmp_path):
    model, path = make_model(), tmp_path / "model.safetensors"
    save_weights(model, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SynmtError, match="broken"):
        load_weights(path, model)


def test_the_processor_time_of_a_record_is_that_of_all_processes(monkeypatch):
    given = []
    monkeypatch.setattr(Processes, "sum", lambda self, *values: given.append(values) or [8_000_000])
    for processes in (Processes(), Processes(rank=0, count=2)):
        meter = Meter(torch.device("cpu"), processes=processes)
        losses = [{"loss": torch.tensor(6.0), "nll": torch.tensor(4.0)}]
        meter.add(Update(1, losses, [[0]], 2, 2 * processes.count, 0.1, torch.tensor(1.0)))
        record = meter.record(1)
        assert (record.processor_seconds == 8, record.tokens) == (
            processes.count == 2,
            2 * processes.count,
        )
    assert len(given) == 1
