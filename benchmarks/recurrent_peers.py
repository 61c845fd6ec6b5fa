"""The LSTMs of JoeyNMT and OpenNMT-py in the shape of a synmt model: what the benchmarks measure against.

Both have synmt's widths and layers, attention by a product with a matrix between (Luong et al., 2015), input feeding,
one matrix for source, target and output, and dropout between layers and at the attentional state. Each computes its
loss as its own trainer does, which counts the correct pieces beside the cross-entropy; nothing is smoothed, as the
dense targets of JoeyNMT's smoothing would only slow it down. What remains different: JoeyNMT encodes EOS, and begins
every layer of the decoder, h and c, where h of the encoder's last layer ended; both have two biases for each gate of
the decoder, and one more in a linear map.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from synmt.data.batch import Batch
from synmt.data.vocabulary import BOS, EOS, PAD, UNK
from synmt.recipe.schema import ModelRecipe

Loss = Callable[[Batch], Tensor]
"""The mean loss of a target piece in a batch."""


class Vocabulary:
    """What JoeyNMT's models ask of a vocabulary: its own has other numbers for padding and the rest."""

    pad_index, unk_index, bos_index, eos_index, sep_index = PAD, UNK, BOS, EOS, None
    specials = lang_tags = ()

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    def __len__(self) -> int:
        return self.pieces


def joeynmt_model(shape: ModelRecipe, pieces: int) -> Any:
    """Build JoeyNMT's recurrent model."""
    from joeynmt.model import build_model

    embeddings = {"embedding_dim": shape.embedding_dim or shape.model_dim, "scale": False, "dropout": 0.0}
    common = {"type": "recurrent", "rnn_type": "lstm", "embeddings": embeddings, "dropout": shape.dropout}
    encoder = {"hidden_size": shape.model_dim // 2, "num_layers": shape.encoder_layers, "bidirectional": True}
    decoder = {"hidden_size": shape.model_dim, "num_layers": shape.decoder_layers, "hidden_dropout": shape.dropout}
    attention = {"attention": "luong", "input_feeding": True, "init_hidden": "last"}
    tied = {"tied_embeddings": True, "tied_softmax": True}
    vocabulary = Vocabulary(pieces)
    model = build_model(
        {"encoder": common | encoder, "decoder": common | decoder | attention, **tied},
        src_vocab=vocabulary,
        trg_vocab=vocabulary,
    )
    model.loss_function = ("crossentropy", 0.0)
    return model


def joeynmt_loss(model: Any) -> Loss:
    """Compute the loss as JoeyNMT's trainer does."""
    from joeynmt.batch import Batch as JoeyBatch

    def loss(batch: Batch) -> Tensor:
        joey = JoeyBatch(
            src=batch.source.ids,
            src_length=batch.source.mask.sum(1),
            src_prompt_mask=None,
            trg=whole_target(batch),
            trg_prompt_mask=None,
            indices=torch.arange(len(batch.target_input)),
            device=batch.target_input.device,
            pad_index=PAD,
            eos_index=EOS,
        )
        joey.sort_by_src_length()
        total, *_ = model(return_type="loss", **vars(joey))
        return joey.normalize(total, "tokens")

    return loss


def opennmt_model(shape: ModelRecipe, pieces: int) -> nn.Module:
    """Build OpenNMT-py's recurrent model."""
    with warnings.catch_warnings():
        # it names parts of torch by old names
        warnings.simplefilter("ignore")
        from onmt.decoders.decoder import InputFeedRNNDecoder
        from onmt.encoders.rnn_encoder import RNNEncoder
        from onmt.models.model import NMTModel
        from onmt.modules import Embeddings

    width, dropout = shape.embedding_dim or shape.model_dim, shape.dropout
    source, target = (Embeddings(width, pieces, PAD) for _ in range(2))
    target.word_lut.weight = source.word_lut.weight
    encoder = RNNEncoder("LSTM", True, shape.encoder_layers, shape.model_dim, dropout, source)
    decoder = InputFeedRNNDecoder(
        "LSTM", True, shape.decoder_layers, shape.model_dim, attn_type="general", dropout=dropout, embeddings=target
    )
    model = NMTModel(encoder, decoder)
    model.generator = nn.Linear(shape.model_dim, pieces)
    model.generator.weight = target.word_lut.weight
    for weight in model.parameters():
        # its own range
        nn.init.uniform_(weight, -0.1, 0.1)
    return model


def opennmt_loss(model: Any) -> Loss:
    """Compute the loss as OpenNMT-py's trainer does."""
    from onmt.utils.loss import LossCompute

    compute = LossCompute(nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum"), model.generator)

    def loss(batch: Batch) -> Tensor:
        # OpenNMT-py puts no EOS after the source
        source, lengths = batch.source.ids[:, :-1, None], batch.source.mask.sum(1) - 1  # (B, T, 1), (B,)
        target = whole_target(batch)[..., None]  # (B, T, 1)
        states, weights = model(source, target, lengths)
        total, _ = compute({"src": source, "srclen": lengths, "tgt": target}, states, weights)
        return total / len(batch.target_positions)

    return loss


def whole_target(batch: Batch) -> Tensor:
    """Join BOS and what has to be predicted: (B, 1 + T)."""
    return torch.cat((batch.target_input[:, :1], batch.target_output), 1)
