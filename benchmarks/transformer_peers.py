"""The Transformers of eole, OpenNMT-py and JoeyNMT in the shape of a synmt model, to measure against.

All have one matrix for source, target and output, sinusoidal positions, and synmt's rates of dropout at the same
places; JoeyNMT has post-norm, the others only their pre-norm. Each computes its loss as its own trainer does, which
counts the correct pieces. eole and OpenNMT-py smooth it as synmt does; JoeyNMT's smoothing, with dense targets, would
only slow it down.
"""

from __future__ import annotations

import warnings
from typing import Any

from recurrent_peers import Loss, Vocabulary, joeynmt_loss, whole_target
from torch import Tensor, nn

from synmt.data.batch import Batch
from synmt.data.vocabulary import PAD
from synmt.recipe.schema import ModelRecipe

PAD_NAME = "<pad>"


def set_dropout(model: nn.Module, place: str, rate: float) -> None:
    """Set the rate of every dropout whose name ends so: the tools have one rate for several places."""
    for name, part in model.named_modules():
        if isinstance(part, nn.Dropout) and name.endswith(place):
            part.p = rate


def smoothed() -> nn.Module:
    """Give the criterion of eole and OpenNMT-py."""
    return nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum", label_smoothing=0.1)


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
            "embeddings": {"embedding_dim": shape.model_dim, "scale": True, "dropout": shape.dropout},
        }

    vocabulary = Vocabulary(pieces)
    tied = {"tied_embeddings": True, "tied_softmax": True}
    model = build_model(
        {"encoder": part(shape.encoder_layers), "decoder": part(shape.decoder_layers), **tied},
        src_vocab=vocabulary,
        trg_vocab=vocabulary,
    )
    model.loss_function = ("crossentropy", 0.0)
    set_dropout(model, "_att.dropout", shape.attention_dropout)
    set_dropout(model, "pwff_layer.2", shape.activation_dropout)
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
    set_dropout(model, "feed_forward.dropout_1", shape.activation_dropout)
    return model


def opennmt_transformer_loss(model: Any) -> Loss:
    """Compute the loss as OpenNMT-py's trainer does."""
    from onmt.utils.loss import LossCompute

    compute = LossCompute(smoothed(), model.generator)

    def loss(batch: Batch) -> Tensor:
        source, lengths = batch.source.ids[..., None], batch.source.mask.sum(1)  # (B, T, 1), (B,)
        target = whole_target(batch)[..., None]  # (B, T, 1)
        states, weights = model(source, target, lengths)
        total, _ = compute({"src": source, "srclen": lengths, "tgt": target}, states, weights)
        return total / len(batch.target_positions)

    return loss


def eole_transformer(shape: ModelRecipe, pieces: int) -> Any:
    """Build eole's Transformer."""
    with warnings.catch_warnings():
        # it misses libraries for GPUs
        warnings.simplefilter("ignore")
        from eole.config.models import TransformerModelConfig
        from eole.config.training import TrainingConfig
        from eole.models.model import EncoderDecoderModel

    embeddings = {"word_vec_size": shape.model_dim, "position_encoding_type": "SinusoidalConcat"}
    config: Any = TransformerModelConfig(
        **{"hidden_size": shape.model_dim, "heads": shape.heads, "transformer_ff": shape.feedforward_dim},
        **{"encoder": {"layers": shape.encoder_layers}, "decoder": {"layers": shape.decoder_layers}},
        **{"embeddings": embeddings, "share_embeddings": True, "share_decoder_embeddings": True},
        **{"add_qkvbias": True, "add_final_linear_bias": True, "add_ffnbias": True, "generator_bias": False},
    )
    rates: Any = {"dropout": [shape.dropout], "attention_dropout": [shape.attention_dropout]}
    training = TrainingConfig(**rates, param_init_method="xavier_uniform")
    vocabulary = {PAD_NAME: PAD} | {str(piece): piece for piece in range(pieces) if piece != PAD}
    vocabularies = {"src": vocabulary, "tgt": vocabulary, "specials": {"pad_token": PAD_NAME}}
    model = EncoderDecoderModel.for_training(config, vocabularies, training)
    set_dropout(model, "mlp.dropout_1", shape.activation_dropout)
    return model


def eole_transformer_loss(model: Any) -> Loss:
    """Compute the loss as eole's trainer does."""
    from eole.utils.loss import LossCompute

    compute = LossCompute(smoothed(), model.generator, vocabs={"specials": {}})

    def loss(batch: Batch) -> Tensor:
        source, lengths, target = batch.source.ids, batch.source.mask.sum(1), whole_target(batch)
        states, weights, _ = model(source, target, lengths)
        corpora = {"cid": [None] * len(target), "cid_line_number": [0] * len(target)}
        total, *_ = compute({"src": source, "srclen": lengths, "tgt": target, **corpora}, states, weights)
        return total / len(batch.target_positions)

    return loss
