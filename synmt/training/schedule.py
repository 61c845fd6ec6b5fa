"""Learning rate schedules."""

from __future__ import annotations

from synmt.recipe.schema import TrainingRecipe

INITIAL_RATE = 1e-7
"""The learning rate at the start of warm-up for `inverse_sqrt` (the PASCAL paper's scripts)."""


def learning_rate(step: int, recipe: TrainingRecipe, model_dim: int, *, decays: int = 0) -> float:
    """Compute the learning rate of a step, counted from 1.

    inverse_sqrt: linear from 1e-7 to the peak, then peak · √(warmup / step)
    noam:         factor · D^-½ · min(step^-½, step · warmup^-1½)      (Vaswani et al., 2017, equation 3)
    constant:     linear from 0 to the rate, then the rate
    plateau:      constant, times decay^decays                         (Tran & Bisk, 2018: decay ½)

    decays: number of validations so far without improvement.
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
