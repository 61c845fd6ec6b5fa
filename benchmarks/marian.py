"""Hugging Face's MarianMT in the shape of a synmt model: the model that the benchmarks measure against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from synmt.data.batch import Batch
from synmt.data.vocabulary import BOS, EOS, PAD
from synmt.recipe.schema import ModelRecipe


def marian_model(shape: ModelRecipe, pieces: int) -> Any:
    """Build a MarianMTModel of the same size, with shared embeddings, ReLU and the same dropout."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=pieces,
        d_model=shape.model_dim,
        encoder_layers=shape.encoder_layers,
        decoder_layers=shape.decoder_layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.feedforward_dim,
        decoder_ffn_dim=shape.feedforward_dim,
        dropout=shape.dropout,
        attention_dropout=shape.attention_dropout,
        activation_dropout=shape.activation_dropout,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config)


def marian_loss(model: Any) -> Callable[[Batch], Tensor]:
    """Compute the loss of a batch for each target piece as MarianMTModel does."""

    def loss(batch: Batch) -> Tensor:
        return model(
            input_ids=batch.source.ids,
            attention_mask=batch.source.mask.long(),
            decoder_input_ids=batch.target_input,
            labels=batch.target_output.masked_fill(batch.target_output == PAD, -100),
        ).loss

    return loss
