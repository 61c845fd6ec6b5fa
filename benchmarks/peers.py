"""Models of other tools in the shape of a synmt model, to measure against: built, and with the
loss, as there.

Transformers: Hugging Face's MarianMT, eole, OpenNMT-py and JoeyNMT. All have one matrix for source,
target and output, sinusoidal positions, and synmt's rates of dropout at the same places; MarianMT
and JoeyNMT have post-norm, the others only their pre-norm. Each computes its loss as its own
trainer does, which counts the correct pieces. eole and OpenNMT-py smooth it as synmt does;
JoeyNMT's smoothing, with dense targets, would only slow it down.

LSTMs: JoeyNMT and OpenNMT-py, with synmt's widths and layers, attention by a product with a matrix
between (Luong et al., 2015), input feeding, one matrix for source, target and output, and dropout
between layers and at the attentional state. Nothing is smoothed. What remains different: JoeyNMT
encodes EOS, and begins every layer of the decoder, h and c, where h of the encoder's last layer
ended; both have two biases for each gate of the decoder, and one more in a linear map.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import yaml
from torch import Tensor, nn

from synmt.data.batch import Batch
from synmt.data.vocabulary import BOS, EOS, PAD, UNK
from synmt.recipe.schema import ModelRecipe

_SMOOTHING = 0.1
_PAD_NAME = "<pad>"


_MARIAN = """
vocab_size: {pieces}
d_model: {0.model_dim}
encoder_layers: {0.encoder_layers}
decoder_layers: {0.decoder_layers}
encoder_attention_heads: {0.heads}
decoder_attention_heads: {0.heads}
encoder_ffn_dim: {0.feedforward_dim}
decoder_ffn_dim: {0.feedforward_dim}
dropout: {0.dropout}
attention_dropout: {0.attention_dropout}
activation_dropout: {0.activation_dropout}
activation_function: relu
scale_embedding: true
max_position_embeddings: 512
forced_eos_token_id: null
"""


def marian(shape: ModelRecipe, pieces: int) -> Any:
    """Build MarianMT."""
    from transformers import MarianConfig, MarianMTModel

    values = yaml.safe_load(_MARIAN.format(shape, pieces=pieces))
    special = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
    return MarianMTModel(MarianConfig(**values, **special, decoder_start_token_id=BOS))


@contextmanager
def _quietly() -> Iterator[None]:
    """Import without warnings: of old names of torch, and of libraries for GPUs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def marian_loss(model: Any, batch: Batch) -> Tensor:
    """Compute the loss as MarianMTModel does."""
    labels = batch.target_output.masked_fill(batch.target_output == PAD, -100)
    mask = batch.source.mask.long()
    return model(
        input_ids=batch.source.ids,
        attention_mask=mask,
        decoder_input_ids=batch.target_input,
        labels=labels,
    ).loss


class _Vocabulary:
    """What JoeyNMT's models ask of a vocabulary: its own has other numbers for padding and the
    rest."""

    pad_index, unk_index, bos_index, eos_index, sep_index = PAD, UNK, BOS, EOS, None
    specials = lang_tags = ()

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    def __len__(self) -> int:
        return self.pieces


_JOEYNMT = {
    "transformer": """
encoder: &both
  type: transformer
  num_layers: {0.encoder_layers}
  num_heads: {0.heads}
  hidden_size: {0.model_dim}
  ff_size: {0.feedforward_dim}
  dropout: {0.dropout}
  layer_norm: {0.norm}
  embeddings: {{embedding_dim: {0.model_dim}, scale: true, dropout: {0.dropout}}}
decoder:
  <<: *both
  num_layers: {0.decoder_layers}
tied_embeddings: true
tied_softmax: true
""",
    "lstm": """
encoder:
  type: recurrent
  rnn_type: lstm
  embeddings: {{embedding_dim: {width}, scale: false, dropout: 0.0}}
  dropout: {0.dropout}
  hidden_size: {half}
  num_layers: {0.encoder_layers}
  bidirectional: true
decoder:
  type: recurrent
  rnn_type: lstm
  embeddings: {{embedding_dim: {width}, scale: false, dropout: 0.0}}
  dropout: {0.dropout}
  hidden_size: {0.model_dim}
  num_layers: {0.decoder_layers}
  hidden_dropout: {0.dropout}
  attention: luong
  input_feeding: true
  init_hidden: last
tied_embeddings: true
tied_softmax: true
""",
}


def _joeynmt(kind: str, shape: ModelRecipe, pieces: int) -> Any:
    from joeynmt.model import build_model

    width, half = shape.embedding_dim or shape.model_dim, shape.model_dim // 2
    values = yaml.safe_load(_JOEYNMT[kind].format(shape, width=width, half=half))
    vocabulary = _Vocabulary(pieces)
    model = build_model(values, src_vocab=vocabulary, trg_vocab=vocabulary)
    model.loss_function = ("crossentropy", 0.0)
    # of a Transformer
    _set_dropout(model, "_att.dropout", shape.attention_dropout)
    _set_dropout(model, "pwff_layer.2", shape.activation_dropout)
    return model


joeynmt_transformer, joeynmt_lstm = (partial(_joeynmt, kind) for kind in _JOEYNMT)
"""Build JoeyNMT's Transformer, and its recurrent model."""


def joeynmt_batch(source: Any, target: Tensor | None) -> Any:
    """Make a batch of JoeyNMT of a source and a target; without a target, to translate."""
    from joeynmt.batch import Batch as JoeyBatch

    return JoeyBatch(
        src=source.ids,
        src_length=source.mask.sum(1),
        src_prompt_mask=None,
        trg=target,
        trg_prompt_mask=None,
        indices=torch.arange(len(source.ids)),
        device=source.ids.device,
        pad_index=PAD,
        eos_index=EOS,
        is_train=target is not None,
    )


def joeynmt_loss(model: Any, batch: Batch) -> Tensor:
    """Compute the loss as JoeyNMT's trainer does."""
    joey = joeynmt_batch(batch.source, _whole_target(batch))
    joey.sort_by_src_length()
    total, *_ = model(return_type="loss", **vars(joey))
    return joey.normalize(total, "tokens")


_OPENNMT = """
d_model: {0.model_dim}
heads: {0.heads}
d_ff: {0.feedforward_dim}
dropout: {0.dropout}
attention_dropout: {0.attention_dropout}
max_relative_positions: 0
relative_positions_buckets: 0
add_qkvbias: true
---
copy_attn: false
self_attn_type: scaled-dot
aan_useffn: false
full_context_alignment: false
alignment_layer: 0
alignment_heads: 0
"""


def opennmt_transformer(shape: ModelRecipe, pieces: int) -> nn.Module:
    """Build OpenNMT-py's Transformer."""
    with _quietly():
        from onmt.decoders.transformer import TransformerDecoder
        from onmt.encoders.transformer import TransformerEncoder
        from onmt.modules import Embeddings

    source, target = (
        Embeddings(shape.model_dim, pieces, PAD, position_encoding=True, dropout=shape.dropout)
        for _ in range(2)
    )
    common, of_decoder = yaml.safe_load_all(_OPENNMT.format(shape))
    encoder = TransformerEncoder(shape.encoder_layers, embeddings=source, **common)
    decoder = TransformerDecoder(shape.decoder_layers, embeddings=target, **of_decoder, **common)
    model = _opennmt(encoder, decoder, source, target)
    for name, weight in model.named_parameters():
        # it leaves its weights as the memory was
        if weight.dim() > 1:
            nn.init.xavier_uniform_(weight)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
    _set_dropout(model, "feed_forward.dropout_1", shape.activation_dropout)
    return model


def opennmt_lstm(shape: ModelRecipe, pieces: int) -> nn.Module:
    """Build OpenNMT-py's recurrent model."""
    with _quietly():
        from onmt.decoders.decoder import InputFeedRNNDecoder
        from onmt.encoders.rnn_encoder import RNNEncoder
        from onmt.modules import Embeddings

    width, dropout = shape.embedding_dim or shape.model_dim, shape.dropout
    source, target = (Embeddings(width, pieces, PAD) for _ in range(2))
    encoder = RNNEncoder("LSTM", True, shape.encoder_layers, shape.model_dim, dropout, source)
    decoder = InputFeedRNNDecoder(
        "LSTM",
        True,
        shape.decoder_layers,
        shape.model_dim,
        attn_type="general",
        dropout=dropout,
        embeddings=target,
    )
    model = _opennmt(encoder, decoder, source, target)
    for weight in model.parameters():
        # its own range
        nn.init.uniform_(weight, -0.1, 0.1)
    return model


def _opennmt(encoder: Any, decoder: Any, source: Any, target: Any) -> nn.Module:
    """Join both parts to a model with one matrix for source, target and output."""
    from onmt.models.model import NMTModel

    target.word_lut.weight = source.word_lut.weight
    model = NMTModel(encoder, decoder)
    pieces, width = target.word_lut.weight.shape
    model.generator = nn.Linear(width, pieces)
    model.generator.weight = target.word_lut.weight
    return model


def opennmt_transformer_loss(model: Any, batch: Batch) -> Tensor:
    """Compute the loss as OpenNMT-py's trainer does."""
    source, lengths = batch.source.ids[..., None], batch.source.mask.sum(1)  # (B, T, 1), (B,)
    return _opennmt_loss(model, batch, source, lengths, smoothing=_SMOOTHING)


def opennmt_lstm_loss(model: Any, batch: Batch) -> Tensor:
    """Compute the loss in the same way, without EOS after the source."""
    source, lengths = (
        batch.source.ids[:, :-1, None],
        batch.source.mask.sum(1) - 1,
    )  # (B, T, 1), (B,)
    return _opennmt_loss(model, batch, source, lengths, smoothing=0.0)


def _opennmt_loss(
    model: Any, batch: Batch, source: Tensor, lengths: Tensor, *, smoothing: float
) -> Tensor:
    from onmt.utils.loss import LossCompute

    compute = LossCompute(_criterion(smoothing), model.generator)
    target = _whole_target(batch)[..., None]  # (B, T, 1)
    states, weights = model(source, target, lengths)
    total, _ = compute({"src": source, "srclen": lengths, "tgt": target}, states, weights)
    return total / len(batch.target_positions)


_EOLE = """
hidden_size: {0.model_dim}
heads: {0.heads}
transformer_ff: {0.feedforward_dim}
encoder: {{layers: {0.encoder_layers}}}
decoder: {{layers: {0.decoder_layers}}}
embeddings: {{word_vec_size: {0.model_dim}, position_encoding_type: SinusoidalConcat}}
share_embeddings: true
share_decoder_embeddings: true
add_qkvbias: true
add_final_linear_bias: true
add_ffnbias: true
generator_bias: false
---
dropout: [{0.dropout}]
attention_dropout: [{0.attention_dropout}]
param_init_method: xavier_uniform
"""


def eole(shape: ModelRecipe, pieces: int) -> Any:
    """Build eole's Transformer."""
    with _quietly():
        from eole.config.models import TransformerModelConfig
        from eole.config.training import TrainingConfig
        from eole.models.model import EncoderDecoderModel

    values, of_training = yaml.safe_load_all(_EOLE.format(shape))
    config, training = TransformerModelConfig(**values), TrainingConfig(**of_training)
    vocabulary = {_PAD_NAME: PAD} | {str(piece): piece for piece in range(pieces) if piece != PAD}
    vocabularies = {"src": vocabulary, "tgt": vocabulary, "specials": {"pad_token": _PAD_NAME}}
    model = EncoderDecoderModel.for_training(config, vocabularies, training)
    _set_dropout(model, "mlp.dropout_1", shape.activation_dropout)
    return model


def eole_loss(model: Any, batch: Batch) -> Tensor:
    """Compute the loss as eole's trainer does."""
    from eole.utils.loss import LossCompute

    compute = LossCompute(_criterion(_SMOOTHING), model.generator, vocabs={"specials": {}})
    source, lengths, target = batch.source.ids, batch.source.mask.sum(1), _whole_target(batch)
    states, weights, _ = model(source, target, lengths)
    corpora = {"cid": [None] * len(target), "cid_line_number": [0] * len(target)}
    total, *_ = compute(
        {"src": source, "srclen": lengths, "tgt": target, **corpora}, states, weights
    )
    return total / len(batch.target_positions)


def _criterion(smoothing: float) -> nn.Module:
    return nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum", label_smoothing=smoothing)


def _whole_target(batch: Batch) -> Tensor:
    """Join BOS and what has to be predicted: (B, 1 + T)."""
    return torch.cat((batch.target_input[:, :1], batch.target_output), 1)


def _set_dropout(model: nn.Module, place: str, rate: float) -> None:
    """Set the rate of every dropout whose name ends so: the tools have one rate for several
    places."""
    for name, part in model.named_modules():
        if isinstance(part, nn.Dropout) and name.endswith(place):
            part.p = rate


Loss = Callable[[Any, Batch], Tensor]
"""Computes the mean loss of a target piece in a batch."""
PEERS: dict[str, tuple[str, str, Callable[[ModelRecipe, int], Any], Loss]] = {
    "marian": ("plain", "transformers", marian, marian_loss),
    "eole": ("plain", "eole", eole, eole_loss),
    "opennmt-transformer": ("plain", "onmt", opennmt_transformer, opennmt_transformer_loss),
    "joeynmt-transformer": ("plain", "joeynmt", joeynmt_transformer, joeynmt_loss),
    "joeynmt": ("lstm", "joeynmt", joeynmt_lstm, joeynmt_loss),
    "opennmt": ("lstm", "onmt", opennmt_lstm, opennmt_lstm_loss),
}
"""The system whose size a tool has, the module that it needs, its model, and its loss."""
