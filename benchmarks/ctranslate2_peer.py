"""A trained Transformer of synmt as a model of CTranslate2: the same weights, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from synmt.data.vocabulary import BOS, EOS
from synmt.model.seq2seq import sinusoids
from synmt.model.transformer import Transformer
from synmt.recipe.schema import ModelRecipe

PIECES = ("<pad>", "<unk>", "<s>", "</s>")
_LONGEST = 512


def write_ctranslate2(model: Transformer, shape: ModelRecipe, folder: Path) -> None:
    """Write a model folder of CTranslate2; its pieces are `PIECES`, then the numbers of ours."""
    from ctranslate2.specs import TransformerSpec

    layers = (len(model.encoder), len(model.decoder))
    spec = TransformerSpec.from_config(layers, shape.heads, pre_norm=shape.norm == "pre")
    for side, tables in (
        ("encoder", spec.encoder.embeddings[0]),
        ("decoder", spec.decoder.embeddings),
    ):
        part = getattr(spec, side)
        tables.weight = _array(getattr(model, _EMBEDDING[side]).table.weight)
        part.position_encodings.encodings = _array(sinusoids(_LONGEST, shape.model_dim))
        if shape.norm == "pre":
            _norm(part.layer_norm, getattr(model, f"{side}_norm"))
        for theirs, ours in zip(part.layer, getattr(model, side), strict=True):
            _layer(theirs, ours)
    spec.decoder.projection.weight = _array(model.output_weight)
    names = [*PIECES, *map(str, range(len(PIECES), len(model.output_weight)))]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = (
        PIECES[BOS],
        PIECES[EOS],
        "<unk>",
    )
    spec.config.decoder_start_token = PIECES[BOS]
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


_EMBEDDING = {"encoder": "source_embedding", "decoder": "target_embedding"}


def _layer(theirs: Any, ours: Any) -> None:
    first, *middle, last = (residual.norm for residual in ours.residuals)
    _linears(theirs.self_attention.linear, ours.self_attention.project, ours.self_attention.output)
    _norm(theirs.self_attention.layer_norm, first)
    if middle:
        cross = ours.cross_attention
        _linears(theirs.attention.linear, cross.query, cross.key_value, cross.output)
        _norm(theirs.attention.layer_norm, middle[0])
    _linears(
        (theirs.ffn.linear_0, theirs.ffn.linear_1),
        ours.feed_forward.inner,
        ours.feed_forward.output,
    )
    _norm(theirs.ffn.layer_norm, last)


def _linears(theirs: Any, *ours: Any) -> None:
    for into, layer in zip(theirs, ours, strict=True):
        into.weight, into.bias = _array(layer.weight), _array(layer.bias)


def _norm(theirs: Any, ours: Any) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().numpy()
