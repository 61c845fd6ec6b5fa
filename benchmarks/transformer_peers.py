"""The Transformers of OpenNMT-py and JoeyNMT in the shape of a synmt model, to measure against.

Both have one matrix for source, target and output, sinusoidal positions, and synmt's rates of dropout; JoeyNMT has
post-norm, OpenNMT-py only its pre-norm. Each computes its loss as its own trainer does, without smoothing.
"""

from __future__ import annotations

import warnings
from typing import Any

from recurrent_peers import Loss, Vocabulary, joeynmt_loss, whole_target
from torch import Tensor, nn

from synmt.data.batch import Batch
from synmt.data.vocabulary import PAD
from synmt.recipe.schema import ModelRecipe


def joeynmt_transformer(shape: ModelRecipe, pieces: int) -> Any:
    """Build JoeyNMT's Transformer."""
    from joeynmt.model import build_model

    def part(layers: int) -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": shape.heads,
            "hidden_size": shape.model_dim,
            "ff_size": shape.feedforward_dim,
            "dropout": shape.dropout,
            "layer_norm": shape.norm,
            "embeddings": {"embedding_dim": shape.model_dim, "scale": True, "dropout": 0.0},
        }

    vocabulary = Vocabulary(pieces)
    tied = {"tied_embeddings": True, "tied_softmax": True}
    model = build_model(
        {"encoder": part(shape.encoder_layers), "decoder": part(shape.decoder_layers), **tied},
        src_vocab=vocabulary,
        trg_vocab=vocabulary,
    )
    model.loss_function = ("crossentropy", 0.0)
    return model


joeynmt_transformer_loss = joeynmt_loss


def opennmt_transformer(shape: ModelRecipe, pieces: int) -> nn.Module:
    """Build OpenNMT-py's Transformer."""
    with warnings.catch_warnings():
        # it names parts of torch by old names
        warnings.simplefilter("ignore")
        from onmt.decoders.transformer import TransformerDecoder
        from onmt.encoders.transformer import TransformerEncoder
        from onmt.models.model import NMTModel
        from onmt.modules import Embeddings

    source, target = (
        Embeddings(shape.model_dim, pieces, PAD, position_encoding=True, dropout=shape.dropout) for _ in range(2)
    )
    target.word_lut.weight = source.word_lut.weight
    sizes = {"d_model": shape.model_dim, "heads": shape.heads, "d_ff": shape.feedforward_dim}
    rates = {"dropout": shape.dropout, "attention_dropout": shape.attention_dropout}
    common: dict[str, Any] = {**sizes, **rates, "max_relative_positions": 0, "relative_positions_buckets": 0}
    common |= {"add_qkvbias": True}
    encoder = TransformerEncoder(shape.encoder_layers, embeddings=source, **common)
    own = {"copy_attn": False, "self_attn_type": "scaled-dot", "aan_useffn": False, "full_context_alignment": False}
    own |= {"alignment_layer": 0, "alignment_heads": 0}
    decoder = TransformerDecoder(shape.decoder_layers, embeddings=target, **own, **common)
    model = NMTModel(encoder, decoder)
    model.generator = nn.Linear(shape.model_dim, pieces)
    model.generator.weight = target.word_lut.weight
    for name, weight in model.named_parameters():
        # it leaves its weights as the memory was
        if weight.dim() > 1:
            nn.init.xavier_uniform_(weight)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
    return model


def opennmt_transformer_loss(model: Any) -> Loss:
    """Compute the loss as OpenNMT-py's trainer does."""
    from onmt.utils.loss import LossCompute

    compute = LossCompute(nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum"), model.generator)

    def loss(batch: Batch) -> Tensor:
        source, lengths = batch.source.ids[..., None], batch.source.mask.sum(1)  # (B, T, 1), (B,)
        target = whole_target(batch)[..., None]  # (B, T, 1)
        states, weights = model(source, target, lengths)
        total, _ = compute({"src": source, "srclen": lengths, "tgt": target}, states, weights)
        return total / len(batch.target_positions)

    return loss
