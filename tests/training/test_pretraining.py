"""Training on auxiliary losses alone, and auxiliary losses that count in some steps only."""

import re
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from copy_task import CopyTask, make_exact, make_model, make_recipe
from small import random_batch, small_recipe

from synmt.data.stream import Reader
from synmt.errors import UsageError
from synmt.recipe.yaml_text import parse_yaml_value
from synmt.run_folder import Run
from synmt.training.checks import check_values
from synmt.training.trainer import Trainer

pytestmark = pytest.mark.journey

LISA = {"name": "lisa", "layers": [1], "heads": 1}


def trainer_of(folder, variants=({**LISA, "loss_steps": [2, 3]},), **training):
    recipe = make_recipe(variants=variants, **{"warmup": 0, "schedule": "constant", **training})
    torch.manual_seed(0)
    reader = Reader(CopyTask(), recipe.training, {})
    return Trainer(
        Run(folder),
        recipe,
        make_model(recipe),
        train=reader,
        valid=reader,
        device=torch.device("cpu"),
    )


def weights_of(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def changed(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_only_what_the_auxiliary_loss_reaches_is_trained_in_pretraining(tmp_path):
    trainer = trainer_of(tmp_path, [LISA], pretraining=2)
    _, batch = random_batch(trainer.model, [4, 3])
    start = weights_of(trainer.model)
    for _ in range(2):
        trainer.update([batch])
    pretrained = weights_of(trainer.model)
    trained = changed(start, pretrained)
    assert "encoder.0.self_attention.variants.0.biaffine.weight" in trained
    # the head is in the first layer: what comes after its scores learns nothing, and the decoder
    # neither
    reached = ("encoder.0.self_attention.", "source_embedding", "target_emb")
    assert all(name.startswith(reached) for name in trained)
    trainer.update([batch])
    of_decoder = {name for name in start if name.startswith("decoder")}
    assert of_decoder <= changed(pretrained, weights_of(trainer.model))


def gradients(trainer, batch, step):
    """Let the trainer compute the gradients of a step, and keep them from its optimizer."""
    trainer.state = replace(trainer.state, step=step - 1)
    kept = []

    def keep(*_):
        kept.extend(parameter.grad.clone() for parameter in trainer.model.parameters())
        trainer.optimizer.zero_grad()
        return torch.zeros(())

    trainer._step_optimizer = keep
    losses = trainer.update([batch]).losses[0]
    return kept, losses


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_loss_counts_from_its_first_to_its_last_step(step, tmp_path):
    trainer = trainer_of(tmp_path, [{**LISA, "loss_steps": [2, 3], "loss_weight": 0.5}])
    model = trainer.model
    make_exact(trainer)
    _, batch = random_batch(model, [4, 3])
    found, losses = gradients(trainer, batch, step)
    counts = 1.0 if step in (2, 3) else 0.0
    output = trainer._objective(batch)
    (variant,) = model.variants["source"]
    variant.loss_counts = True
    whole = trainer._objective(batch)["lisa.source.1"]
    assert losses["lisa.source.1"].item() == pytest.approx(counts * whole.item())
    total = (output["loss"] + counts * whole) / len(batch.target_positions)
    expected = torch.autograd.grad(total, [*model.parameters()])
    torch.testing.assert_close(found, [*expected], rtol=1e-4, atol=1e-6)


def test_a_training_that_stops_within_its_pretraining_goes_on_bit_for_bit(tmp_path):
    variants = [{**LISA, "loss_steps": [1, 3]}]

    def run(folder, steps):
        (tmp_path / folder).mkdir(exist_ok=True)
        trainer = trainer_of(
            tmp_path / folder, variants, pretraining=3, max_steps=steps, save_every=2
        )
        trainer.train_reader = Parsed(trainer.model)
        trainer.resume()
        list(trainer.train())
        return weights_of(trainer.model)

    run("cut", 2)
    cut, whole = run("cut", 6), run("whole", 6)
    assert not changed(cut, whole)


class Parsed:
    """Gives one parsed batch for each step."""

    def __init__(self, model):
        self.batches = [random_batch(model, [4, 3], seed)[1] for seed in range(8)]

    def forever(self, position):
        for number in range(position.batch, len(self.batches)):
            yield self.batches[number], replace(position, batch=number + 1)

    def once(self):
        return self.batches[:1]

    def longest(self):
        return self.batches[0]


def test_validations_of_pretraining_neither_end_training_nor_lower_the_rate(tmp_path):
    ends = {"validate_every": 1, "patience": 2, "schedule": "plateau", "max_decays": 1}
    trainer = trainer_of(tmp_path, [LISA], pretraining=4, **ends)
    trainer.validate = lambda: 1.0
    for step in range(1, 7):
        trainer.state.step = step
        trainer._validated()
        assert trainer.state.waited == trainer.state.decays == max(0, step - 4)


# in the last line, losses take turns
NOTHING = """
5 | [] | nothing is trained in step 1
5 | [{name: pascal}] | nothing is trained in step 1
5 | [{LISA, loss_weight: 0}] | nothing is trained in step 1
5 | [{LISA, loss_steps: [1, 4]}] | nothing is trained in step 5
5 | [{LISA, loss_steps: [2, 9]}] | nothing is trained in step 1
0 | [{name: pascal, loss_steps: [1, 2]}] | has no auxiliary loss. Leave out `loss
5 | [{LISA, loss_steps: [1, 2]}, {name: dbsa, layers: [2], loss_steps: [3, 9]}] |
""".replace("LISA", "name: lisa, layers: [1], heads: 1")


@pytest.mark.parametrize("line", NOTHING.strip().splitlines())
def test_pretraining_on_nothing_is_refused(line):
    pretraining, variants, message = re.split(r" \| ?", line)
    training = {"pretraining": int(pretraining), "device": "cpu"}
    syntax = {"variants": parse_yaml_value(variants)}
    recipe = small_recipe(syntax=syntax, training=training)
    with pytest.raises(UsageError, match=message) if message else nullcontext():
        check_values(recipe)
