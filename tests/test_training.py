"""The training loop on a copy task: exact resume, accumulation, stopping, and what goes wrong."""

import json
import math

import numpy as np
import pytest
import torch
from small import LSTM_SIZE, PIECES, SIZE

from synmt.data.corpus import Example
from synmt.data.stream import Position, Reader, prefetch
from synmt.errors import SynmtError
from synmt.model.build import build
from synmt.model.weights import average_weights, load_weights, save_weights
from synmt.recipe.load import check_recipe
from synmt.run import Run, find_run
from synmt.training.checkpoint import regular_checkpoints
from synmt.training.records import EndRecord, StepRecord, ValidationRecord
from synmt.training.schedule import learning_rate
from synmt.training.trainer import Trainer


class CopyTask:
    """Sentences that are their own translations, in memory."""

    def __init__(self, sentences=60, seed=0):
        random = np.random.default_rng(seed)
        self.texts = [random.integers(4, PIECES, random.integers(1, 9)) for _ in range(sentences)]
        self.source_lengths = self.target_lengths = np.array([len(text) for text in self.texts])

    def __len__(self):
        return len(self.texts)

    def rows(self, indices):
        return [Example(int(i), self.texts[i], self.texts[i]) for i in indices]


def make_recipe(model=None, variants=(), **training):
    settings = {
        "max_steps": 8,
        "batch_tokens": 60,
        "learning_rate": 0.01,
        "warmup": 4,
        "log_every": 2,
        "validate_every": 4,
        "save_every": 2,
        "keep": 10,
        "device": "cpu",
    }
    return check_recipe(
        {
            "name": "copy",
            "source": "en",
            "target": "de",
            "corpus": {"name": "controlled"},
            "model": {**(model or SIZE), "dropout": 0.2},
            "syntax": {"variants": list(variants)},
            "training": settings | training,
        },
        where="test",
    )


def make_trainer(folder, recipe=None, score=None, data=None):
    recipe = recipe or make_recipe()
    torch.manual_seed(recipe.training.seed)
    model = build(recipe.model, recipe.syntax, source_pieces=PIECES, target_pieces=PIECES)
    data = data or CopyTask()
    return Trainer(
        Run(folder),
        recipe,
        model,
        train=Reader(data, recipe.training),
        valid=Reader(CopyTask(10, seed=9), recipe.training),
        device=torch.device("cpu"),
        score=score,
    )


def make_exact(trainer):
    """Leave out what would blow rounding up: dropout, and Adam's division by gradients near zero."""
    trainer.optimizer = torch.optim.SGD(trainer.model.parameters(), fused=True)
    for module in trainer.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0


def weights(folder):
    path = Run(folder).weights_of("last")
    from safetensors.torch import load_file

    return load_file(path)


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_resumed_run_ends_bit_for_bit_like_an_uninterrupted_one(architecture, tmp_path):
    recipe = make_recipe()
    if architecture == "lstm":
        recipe = make_recipe({"architecture": "lstm", **LSTM_SIZE}, [{"name": "latent_tree"}])
    list(make_trainer(tmp_path / "whole", recipe).train())
    stopped = make_trainer(tmp_path / "stopped", recipe)
    for record in stopped.train():
        # as if killed after the validation of step 4 was logged: the newest checkpoint is that of step 2
        if isinstance(record, ValidationRecord):
            break
    resumed = make_trainer(tmp_path / "stopped", recipe)
    assert resumed.resume() == 2
    list(resumed.train())
    whole, again = weights(tmp_path / "whole"), weights(tmp_path / "stopped")
    assert whole.keys() == again.keys()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    states = [
        json.loads((Run(tmp_path / name).checkpoint(8) / "state.json").read_text()) for name in ("whole", "stopped")
    ]
    assert states[0] == states[1]


def test_asking_to_stop_saves_the_step_and_the_rest_is_the_same(tmp_path):
    list(make_trainer(tmp_path / "whole").train())
    asked = make_trainer(tmp_path / "asked", make_recipe(log_every=1))
    records = []
    for record in asked.train():
        records.append(record)
        if isinstance(record, StepRecord) and record.step == 3:
            asked.stop.set()
    assert records[-1] == EndRecord(3, "interrupted")
    resumed = make_trainer(tmp_path / "asked")
    assert resumed.resume() == 3
    list(resumed.train())
    whole, again = weights(tmp_path / "whole"), weights(tmp_path / "asked")
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_a_checkpoint_that_an_interruption_left_is_no_part_of_the_average(tmp_path):
    recipe = make_recipe(log_every=1)
    asked = make_trainer(tmp_path / "run", recipe)
    for record in asked.train():
        if record.step == 3:
            asked.stop.set()
    resumed = make_trainer(tmp_path / "run", recipe)
    resumed.resume()
    list(resumed.train())
    names = [folder.name for folder in regular_checkpoints(Run(tmp_path / "run"), recipe.training)]
    assert names == ["step-00000002", "step-00000004", "step-00000006", "step-00000008"]


def test_two_accumulated_batches_equal_one_batch_of_both(tmp_path):
    recipe = make_recipe(max_steps=1, batch_tokens=40)
    whole = make_trainer(tmp_path / "a", recipe)
    parts = make_trainer(tmp_path / "b", recipe)
    for trainer in (whole, parts):
        make_exact(trainer)
    reader = whole.train_reader
    whole.update((reader.batch(np.arange(8)),))
    parts.update((reader.batch(np.arange(3)), reader.batch(np.arange(3, 8))))
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_it_learns_to_copy(tmp_path):
    recipe = make_recipe(max_steps=60, batch_tokens=200, warmup=10, validate_every=30)
    records = [r for r in make_trainer(tmp_path, recipe).train() if isinstance(r, ValidationRecord)]
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
    records = list(make_trainer(tmp_path, recipe, score=lambda model: next(values)).train())
    assert records[-1] == EndRecord(8, "patience")
    validations = [r for r in records if isinstance(r, ValidationRecord)]
    assert [(r.bleu, r.best) for r in validations] == [(1.0, True), (5.0, True), (3.0, False), (4.0, False)]
    assert Run(tmp_path).weights_of("best") == Run(tmp_path).checkpoint(4) / "model.safetensors"


def test_old_checkpoints_go_but_the_best_and_the_last_stay(tmp_path):
    values = iter([9.0, 1.0, 2.0, 3.0])
    recipe = make_recipe(validate_every=2, best="bleu", keep=1, average=2)
    list(make_trainer(tmp_path, recipe, score=lambda model: next(values)).train())
    run = Run(tmp_path)
    assert [folder.name for folder in run.checkpoints()] == ["step-00000002", "step-00000006", "step-00000008"]
    optimizers = [folder.name for folder in run.checkpoints() if (folder / "optimizer.safetensors").exists()]
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
    with pytest.raises(SynmtError, match=r"training lines \d+.*gradient of step 1 is not a finite number"):
        list(trainer.train())
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
    assert not Run(tmp_path).checkpoints()


def test_no_room_on_a_cpu_is_recognised_by_its_words(tmp_path, monkeypatch):
    trainer = make_trainer(tmp_path)

    def full(*_):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(trainer.model, "decode", full)
    with pytest.raises(SynmtError, match="out of memory with a batch"):
        list(trainer.train())


def test_running_out_of_memory_names_the_batch_and_what_to_lower(tmp_path, monkeypatch):
    trainer = make_trainer(tmp_path)

    def full(*_):
        raise torch.OutOfMemoryError("no")

    monkeypatch.setattr(trainer.model, "decode", full)
    with pytest.raises(SynmtError, match=r"batch of \d+ sentences, \d+ source and \d+ target pieces\. Lower training"):
        list(trainer.train())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains_too(tmp_path, precision):
    recipe = make_recipe(precision=precision, max_steps=30, batch_tokens=200, validate_every=30, clip_norm=1.0)
    trainer = make_trainer(tmp_path, recipe)
    before = trainer.validate()
    records = [r for r in trainer.train() if isinstance(r, ValidationRecord)]
    assert records[-1].loss < before


def test_two_processes_equal_one_that_accumulates(tmp_path):
    import subprocess
    import sys
    from pathlib import Path

    script = Path(__file__).parent / "two_processes.py"
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=29511", script, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
    both = weights(tmp_path / "parallel")
    alone = make_trainer(tmp_path / "alone", make_recipe(max_steps=3, accumulate=2))
    make_exact(alone)
    list(alone.train())
    for name, weight in weights(tmp_path / "alone").items():
        torch.testing.assert_close(weight, both[name])


def test_batches_can_be_taken_up_at_any_position():
    reader = Reader(CopyTask(), make_recipe().training)
    stream = reader.forever(Position())
    taken = [next(stream) for _ in range(40)]
    assert taken[-1][1].epoch > 0
    for at in (3, 17, 38):
        again, _ = next(reader.forever(taken[at][1]))
        assert again.lines == taken[at + 1][0].lines if at < 39 else True


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
    recipe = make_recipe().training
    seen = []
    for rank in range(2):
        reader = Reader(CopyTask(), recipe, rank=rank, processes=2)
        seen.append([b.lines for b, position in zip_epoch(reader)])
    flat = [line for lines in seen for batch in lines for line in batch]
    assert len(flat) == len(set(flat))
    assert len(seen[0]) == len(seen[1])


def zip_epoch(reader):
    for batch, position in reader.forever(Position()):
        if position.epoch:
            return
        yield batch, position


def test_prefetch_keeps_order_and_passes_errors_on():
    def items():
        yield from range(10)
        raise KeyError("eleven")

    taken = []
    with pytest.raises(KeyError, match="eleven"):
        taken.extend(prefetch(items()))
    assert taken == list(range(10))


def test_averaged_weights_are_the_mean(tmp_path):
    model = build(make_recipe().model, make_recipe().syntax, source_pieces=PIECES, target_pieces=PIECES)
    for index, value in enumerate((1.0, 3.0)):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(value)
        save_weights(model, tmp_path / f"{index}.safetensors")
    average_weights([tmp_path / "0.safetensors", tmp_path / "1.safetensors"], tmp_path / "mean.safetensors")
    load_weights(tmp_path / "mean.safetensors", model)
    assert all((parameter == 2).all() for parameter in model.parameters())


def test_weights_of_another_model_are_refused(tmp_path):
    recipe = make_recipe()
    model = build(recipe.model, recipe.syntax, source_pieces=PIECES, target_pieces=PIECES)
    save_weights(model, tmp_path / "model.safetensors")
    other = build(recipe.model, recipe.syntax, source_pieces=PIECES + 1, target_pieces=PIECES + 1)
    with pytest.raises(SynmtError, match=r"broken.*has the shape"):
        load_weights(tmp_path / "model.safetensors", other)


def test_a_cut_off_file_of_weights_is_refused(tmp_path):
    recipe = make_recipe()
    model = build(recipe.model, recipe.syntax, source_pieces=PIECES, target_pieces=PIECES)
    path = tmp_path / "model.safetensors"
    save_weights(model, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SynmtError, match="broken"):
        load_weights(path, model)


def write_run(folder, **info):
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"format": 1, **info}), encoding="utf-8")


def test_the_newest_finished_run_is_found(tmp_path):
    write_run(tmp_path / "a", status="finished", finished_at="2026-01-02T00:00:00")
    write_run(tmp_path / "b", status="finished", finished_at="2026-01-03T00:00:00")
    write_run(tmp_path / "c", status="training")
    assert find_run(None, tmp_path).name == "b"


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "cannot be read"), ('{"format": 99}', "format 99"), ("[]", "cannot be read")],
)
def test_a_broken_run_folder_is_named(tmp_path, text, said):
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(SynmtError, match=said):
        find_run(tmp_path)


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(SynmtError, match=r"not a run folder: run\.json is missing"):
        find_run(tmp_path)
    with pytest.raises(SynmtError, match="no finished run"):
        find_run(None, tmp_path)


def test_an_unfinished_run_says_how_to_go_on(tmp_path):
    write_run(tmp_path / "a", status="training")
    with pytest.raises(SynmtError, match=r"not finished.*synmt train"):
        Run(tmp_path / "a").weights_of("final")
