"""Models of other tools in the shape of a synmt model, to measure against: built, and with the
loss, as there.

Transformers: Hugging Face's MarianMT, eole and JoeyNMT. All have one matrix for source, target and
output, sinusoidal positions, and synmt's rates of dropout at the same places; MarianMT and JoeyNMT
have post-norm, eole only its pre-norm. Each computes its loss as its own trainer does, which counts
the correct pieces. eole smooths it as synmt does; JoeyNMT's smoothing, with dense targets, would
only slow it down.

LSTM: JoeyNMT, with synmt's widths and layers, attention by a product with a matrix between (Luong
et al., 2015), input feeding, one matrix for source, target and output, and dropout between layers
and at the attentional state. Nothing is smoothed. What remains different: it encodes EOS, and
begins every layer of the decoder, h and c, where h of the encoder's last layer ended; it has two
biases for each gate of the decoder, and one more in a linear map.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
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
    with warnings.catch_warnings():
        # of old names of torch, and of libraries for GPUs
        warnings.simplefilter("ignore")
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

    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum", label_smoothing=_SMOOTHING)
    compute = LossCompute(criterion, model.generator, vocabs={"specials": {}})
    source, lengths, target = batch.source.ids, batch.source.mask.sum(1), _whole_target(batch)
    states, weights, _ = model(source, target, lengths)
    corpora = {"cid": [None] * len(target), "cid_line_number": [0] * len(target)}
    total, *_ = compute(
        {"src": source, "srclen": lengths, "tgt": target, **corpora}, states, weights
    )
    return total / len(batch.target_positions)


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
    "joeynmt-transformer": ("plain", "joeynmt", joeynmt_transformer, joeynmt_loss),
    "joeynmt": ("lstm", "joeynmt", joeynmt_lstm, joeynmt_loss),
}
"""The system whose size a tool has, the module that it needs, its model, and its loss."""
