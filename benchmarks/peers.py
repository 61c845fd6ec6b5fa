"""A trained Transformer of synmt as a model of CTranslate2 or of Hugging Face: the same weights, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from synmt.data.vocabulary import BOS, EOS, PAD
from synmt.model.embedding import sinusoids
from synmt.model.transformer import Transformer
from synmt.recipe.schema import ModelRecipe

PIECES = ("<pad>", "<unk>", "<s>", "</s>")
_LONGEST = 512


def write_ctranslate2(model: Transformer, shape: ModelRecipe, folder: Path) -> None:
    """Write a model folder of CTranslate2; its pieces are `PIECES`, then the numbers of ours."""
    from ctranslate2.specs import TransformerSpec

    layers = (len(model.encoder), len(model.decoder))
    spec = TransformerSpec.from_config(layers, shape.heads, pre_norm=shape.norm == "pre")
    for side, tables in (("encoder", spec.encoder.embeddings[0]), ("decoder", spec.decoder.embeddings)):
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
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = PIECES[BOS], PIECES[EOS], "<unk>"
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
    _linears((theirs.ffn.linear_0, theirs.ffn.linear_1), ours.feed_forward.inner, ours.feed_forward.output)
    _norm(theirs.ffn.layer_norm, last)


def _linears(theirs: Any, *ours: Any) -> None:
    for one, other in zip(theirs, ours, strict=True):
        one.weight, one.bias = _array(other.weight), _array(other.bias)


def _norm(theirs: Any, ours: Any) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().numpy()


def as_marian(model: Transformer, shape: ModelRecipe) -> Any:
    """Give the weights to MarianMTModel, which is post-norm and has one table of embeddings."""
    from marian import marian_model

    assert shape.norm == "post" and shape.embeddings == "shared", "Marian is post-norm with shared embeddings"
    marian = marian_model(shape, len(model.output_weight)).eval()
    weights = {name: tensor for name, tensor in marian.state_dict().items() if "final_logits_bias" in name}
    for name, tensor in model.state_dict().items():
        weights.update(_renamed(name, tensor))
    positions = sinusoids(_LONGEST, shape.model_dim)
    for side in ("encoder", "decoder"):
        weights[f"model.{side}.embed_positions.weight"] = positions
        weights[f"model.{side}.embed_tokens.weight"] = model.output_weight
    weights["model.shared.weight"] = weights["lm_head.weight"] = model.output_weight
    marian.load_state_dict(weights)
    return marian


def _renamed(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """Give one of our layers' weights the names they have in Marian."""
    side, _, rest = name.partition(".")
    if side not in ("encoder", "decoder"):
        return {}
    number, _, rest = rest.partition(".")
    module, _, kind = rest.rpartition(".")
    cross = "encoder_attn_layer_norm"
    norms = ["self_attn_layer_norm", *([cross] if side == "decoder" else []), "final_layer_norm"]
    names = {
        "self_attention.project": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        "self_attention.output": ["self_attn.out_proj"],
        "cross_attention.query": ["encoder_attn.q_proj"],
        "cross_attention.key_value": ["encoder_attn.k_proj", "encoder_attn.v_proj"],
        "cross_attention.output": ["encoder_attn.out_proj"],
        "feed_forward.inner": ["fc1"],
        "feed_forward.output": ["fc2"],
        **{f"residuals.{index}.norm": [norm] for index, norm in enumerate(norms)},
    }[module]
    parts = tensor.chunk(len(names))
    return {f"model.{side}.layers.{number}.{new}.{kind}": part for new, part in zip(names, parts, strict=True)}
