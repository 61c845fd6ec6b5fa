"""The learning rate of each step."""

from __future__ import annotations

from synmt.recipe.schema import TrainingRecipe

INITIAL_RATE = 1e-7
"""Where warm-up begins for `inverse_sqrt` (the PASCAL paper's scripts)."""


def learning_rate(step: int, recipe: TrainingRecipe, model_dim: int, *, decays: int = 0) -> float:
    """Compute the learning rate of a step, counted from 1.

    inverse_sqrt: from 1e-7 up to the peak in a line, then peak · √(warmup / step)
    noam:         factor · D^-½ · min(step^-½, step · warmup^-1½)      (Vaswani et al., 2017, equation 3)
    constant:     up to the rate in a line, then the rate
    plateau:      as constant, times decay^decays                      (Tran & Bisk, 2018: decay ½)

    decays: how many validations so far were no better than the best before them.
    """
    rate, warmup = recipe.learning_rate, recipe.warmup
    if recipe.schedule == "plateau":
        rate *= recipe.decay**decays
    if recipe.schedule == "noam":
        return rate * model_dim**-0.5 * min(step**-0.5, step * max(warmup, 1) ** -1.5)
    if step < warmup:
        start = INITIAL_RATE if recipe.schedule == "inverse_sqrt" else 0.0
        return start + (rate - start) * step / warmup
    if recipe.schedule in ("constant", "plateau"):
        return rate
    return rate * (max(warmup, 1) / step) ** 0.5
