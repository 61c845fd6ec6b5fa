"""Muon beside AdamW, and moving averages of the weights, against their equations."""

import pytest
import torch
from copy_task import make_recipe, make_trainer
from refusing import assert_refused
from safetensors.torch import load_file

from synmt.training.distributed import Processes
from synmt.training.optimizer import make_optimizer

pytestmark = pytest.mark.journey


def weights_of(trainer):
    return {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}


def orthogonalized(matrix):
    """Five steps of Newton and Schulz, with the polynomial of Jordan et al. (2024)."""
    wide = matrix.T if len(matrix) > len(matrix.T) else matrix
    near = wide / wide.norm()
    for _ in range(5):
        square = near @ near.T
        near = 3.4445 * near + (-4.775 * square + 2.0315 * square @ square) @ near
    return near.T if len(matrix) > len(matrix.T) else near


def updated(**training):
    """Update two small weights three times: what they were, the gradients, what they became."""
    settings = make_recipe(**training).training
    torch.manual_seed(2)
    matrix, bias = (torch.nn.Parameter(torch.randn(*size)) for size in ((6, 4), (6,)))
    slopes = [[torch.randn(6, 4), torch.randn(6)] for _ in range(3)]
    before = matrix.detach().clone(), bias.detach().clone()
    groups = [{"params": [matrix, bias], "lr": 0.02}]
    optimizer = make_optimizer(groups, settings, Processes(), [matrix])
    for of_matrix, of_bias in slopes:
        matrix.grad, bias.grad = of_matrix.clone(), of_bias.clone()
        optimizer.step()
    return before, slopes, (matrix.detach(), bias.detach())


def test_muon_steps_along_orthogonal_matrices_as_far_as_adam():
    (matrix, bias), slopes, found = updated(optimizer="muon", weight_decay=0.1)
    momentum = torch.zeros(6, 4)
    for slope, _ in slopes:
        # as in torch, momentum is an average
        momentum = 0.95 * momentum + 0.05 * slope
        direction = orthogonalized(0.05 * slope + 0.95 * momentum)
        matrix = (1 - 0.02 * 0.1) * matrix - 0.02 * 0.2 * 6**0.5 * direction
    torch.testing.assert_close(found[0], matrix, rtol=2e-2, atol=2e-3)
    torch.testing.assert_close(found[1], updated(weight_decay=0.1)[2][1])
    assert not torch.equal(found[1], bias)


def test_muon_updates_the_matrices_of_layers_and_nothing_after_a_gradient_that_is_not_finite(
    tmp_path,
):
    trainer = make_trainer(tmp_path, make_recipe(optimizer="muon", max_steps=1))
    names = {weight: name for name, weight in trainer.model.named_parameters()}
    of_muon = sorted(names[weight] for weight in trainer.optimizer.matrices)
    assert "decoder.0.cross_attention.key_value.weight" in of_muon
    assert not any("emb" in name or "bias" in name or "norm" in name for name in of_muon)
    before = weights_of(trainer)
    trainer.model.encoder[0].feed_forward.output.bias.register_hook(lambda slope: slope * torch.nan)
    [batch, *_] = trainer.train_reader.once()
    trainer.update([batch])
    torch.testing.assert_close(weights_of(trainer), before, rtol=0, atol=0)


def test_moving_averages_are_validated_and_stored_and_training_goes_on_without_them(tmp_path):
    trainer = make_trainer(tmp_path, make_recipe(ema=0.5, validate_every=8))
    averages, validated = None, []
    update, validate = trainer.update, trainer.validate

    def updating(batches):
        nonlocal averages
        made, weights = update(batches), weights_of(trainer)
        decay = min(0.5, (1 + made.step) / (10 + made.step))
        averages = averages or weights
        averages = {name: decay * averages[name] + (1 - decay) * weights[name] for name in weights}
        return made

    def validating():
        validated.append(weights_of(trainer))
        return validate()

    trainer.update, trainer.validate = updating, validating
    list(trainer.train())
    torch.testing.assert_close(validated, [averages])
    stored = load_file(trainer.run.checkpoint(8) / "model.safetensors")
    torch.testing.assert_close(stored, averages)
    assert all(not torch.equal(one, averages[name]) for name, one in weights_of(trainer).items())


def test_an_old_pytorch_has_no_muon(monkeypatch):
    monkeypatch.delattr(torch.optim, "Muon")
    settings = make_recipe(optimizer="muon").training
    assert_refused("muon` needs PyTorch 2.9", make_optimizer, [], settings, Processes())
