"""The copy task: sentences in memory that are their own translations, and a small
model's trainer on them."""

import json

import numpy as np
import torch
from safetensors.torch import load_file
from small import PIECES, SIZE, small_recipe

from synmt.data.corpus import Example
from synmt.data.stream import Reader
from synmt.model.build import build
from synmt.recipe.yaml_text import parse_yaml_value
from synmt.run_folder import Run
from synmt.training.records import ValidationRecord, ValidationScores
from synmt.training.trainer import Trainer


class CopyTask:
    """Sentences that are their own translations, in memory."""

    def __init__(self, sentences=60, seed=0):
        random = np.random.default_rng(seed)
        self.texts = [random.integers(4, PIECES, random.integers(1, 9)) for _ in range(sentences)]

    def __len__(self):
        return len(self.texts)

    def lengths(self):
        return np.array([[len(text) + 1] * 2 for text in self.texts])

    def rows(self, indices):
        return [Example(int(i), self.texts[i], self.texts[i]) for i in indices]


SETTINGS = """
{max_steps: 8, batch_tokens: 60, learning_rate: 0.01, warmup: 4, log_every: 2, validate_every: 4,
save_every: 2, keep: 10, device: cpu}
"""


def make_recipe(model=None, variants=(), **training):
    settings = parse_yaml_value(SETTINGS) | training
    sized = {**(model or SIZE), "dropout": 0.2}
    return small_recipe(model=sized, syntax={"variants": list(variants)}, training=settings)


def make_model(recipe=None, pieces=PIECES):
    recipe = recipe or make_recipe()
    return build(recipe.model, recipe.syntax, source_pieces=pieces, target_pieces=pieces)


def scores_of(bleu):
    """Make the function of scores from one of BLEU."""

    def scored(model):
        value = bleu(model)
        return ValidationScores({"bleu": value}, -value)

    return scored


def make_trainer(folder, recipe=None, score=None, processes=None):
    recipe = recipe or make_recipe()
    torch.manual_seed(recipe.training.seed)
    return Trainer(
        Run(folder),
        recipe,
        make_model(recipe),
        train=Reader(CopyTask(), recipe.training),
        valid=Reader(CopyTask(10, seed=9), recipe.training),
        device=torch.device("cpu"),
        score=score and scores_of(score),
        processes=processes,
    )


def make_exact(trainer, momentum=0.0):
    """Leave out what would blow rounding up: dropout, and Adam's division by gradients near
    zero."""
    betas = (momentum, 0.9)
    trainer.optimizer = torch.optim.AdamW(
        trainer.model.parameters(), betas=betas, eps=1.0, weight_decay=0, fused=True
    )
    for module in trainer.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0


def train(folder, recipe=None, score=None):
    """Train from the beginning; gives the records."""
    return list(make_trainer(folder, recipe, score).train())


def resume(folder, recipe=None, score=None):
    """Take up the newest checkpoint; gives the trainer and the step."""
    trainer = make_trainer(folder, recipe, score)
    return trainer, trainer.resume()


def validations_of(records):
    return [record for record in records if isinstance(record, ValidationRecord)]


def weights(folder):
    return load_file(Run(folder).weights_of("last"))


def assert_same_weights(one, other):
    """Compare the last weights of two runs bit for bit."""
    torch.testing.assert_close(weights(one), weights(other), rtol=0, atol=0)


def state_of(folder, step):
    return json.loads((Run(folder).checkpoint(step) / "state.json").read_text())


def write_state(folder, step, state):
    (Run(folder).checkpoint(step) / "state.json").write_text(json.dumps(state))
