"""What training minimises: one module, so that several processes can wrap model and losses together."""

from __future__ import annotations

from torch import Tensor, nn

from synmt.data.batch import Batch
from synmt.model.seq2seq import Seq2Seq
from synmt.training.loss import smoothed_cross_entropy


class Objective(nn.Module):
    """Computes the losses of a model on a batch; the loss also reads the weight of the output layer."""

    def __init__(self, model: Seq2Seq, label_smoothing: float) -> None:
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Compute sums over the batch: `loss`, `nll` in nats, and the model's auxiliary losses."""
        output = self.model(batch)
        states = output.states.flatten(0, 1).index_select(0, batch.target_positions)  # (N, D)
        targets = batch.target_output.flatten().index_select(0, batch.target_positions)  # (N,)
        loss, nll = smoothed_cross_entropy(states, self.model.output_weight, targets, smoothing=self.label_smoothing)
        return {"loss": loss, "nll": nll, **output.losses}
