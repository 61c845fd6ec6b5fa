"""Write a trained Transformer for other programs: CTranslate2, and transformers (`MarianMTModel`).

The weights are the same to the last bit. Both get the SentencePiece models next to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from synmt.arrays import SIDES, Values
from synmt.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, SentencePieces, Vocabulary
from synmt.errors import SynmtError, UsageError
from synmt.exchange.marian import BIAS, POSITIONS, SHARED, TABLES, names_in_layers
from synmt.files.writing import write_folder_atomically
from synmt.model.transformer import Transformer
from synmt.recipe.schema import Recipe

Target = Literal["ctranslate2", "transformers"]

_LONGEST = 1024
"""Positions that the other programs know."""


@dataclass(frozen=True)
class Exported:
    """A trained model, and what other programs need of it."""

    model: Transformer
    recipe: Recipe
    source: SentencePieces
    target: SentencePieces


def export(
    model: nn.Module,
    recipe: Recipe,
    source: Vocabulary,
    target: Vocabulary,
    folder: Path,
    to: Target,
    *,
    card: Path | None = None,
) -> None:
    """Write a folder that another program loads; raises UsageError, which lists every reason, for a
    model that it cannot compute.

    card: a model card that is taken along, if it is there.
    """
    problems = list(_problems(model, recipe, source, to))
    if problems:
        raise UsageError(
            f"{to} cannot compute this model: {'; '.join(problems)}",
            where=recipe.name,
            do="Systems that need no parser when they translate, such as plain models, multi-task "
            "ones, tree-planting and tree regularization, can be exported",
        )
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "source.spm").is_file():
        raise UsageError("the folder has other files", where=folder, do="Name a new folder")
    exported = Exported(
        cast(Transformer, model),
        recipe,
        cast(SentencePieces, source),
        cast(SentencePieces, target),
    )
    with write_folder_atomically(folder) as unfinished:
        for side, vocabulary in zip(SIDES, (exported.source, exported.target), strict=True):
            (unfinished / f"{side}.spm").write_bytes(vocabulary.model_bytes())
        _WRITERS[to](exported, unfinished)
        if card is not None and card.is_file():
            text = card.read_text(encoding="utf-8")
            text = text.replace("library_name: synmt", f"library_name: {to}", 1)
            (unfinished / card.name).write_text(text, encoding="utf-8")


def _problems(model: nn.Module, recipe: Recipe, source: Vocabulary, to: Target) -> Iterator[str]:
    """Say why another program cannot compute a model."""
    shape = recipe.model
    if not isinstance(model, Transformer):
        yield "it is an LSTM"
        return
    for side in SIDES:
        for name in dict.fromkeys(
            variant.recipe_name() for variant in model.variants[side] if not variant.only_learns
        ):
            yield f"its attention is changed by `{name}`"
    if recipe.tasks.mixed_only:
        yield "it translates linearised trees"
    if not isinstance(source, SentencePieces):
        yield "its pieces are words, not those of SentencePiece"
    if any(recipe.text_of(side).changes for side in SIDES):
        yield "its text is tokenized by another tool first (`text`)"
    if shape.positions not in ("sinusoid", "vaswani"):
        yield f"its positions are {shape.positions}"
    if shape.feed_forward == "swiglu" or shape.norm_kind == "rms":
        yield "it has SwiGLU or RMSNorm"
    if len(set(shape.heads_of("source"))) > 1:
        yield "its layers have unlike numbers of heads"
    if to == "transformers":
        if shape.norm == "pre":
            yield "its norms are before the sub-layers (`norm: pre`)"
        if shape.embeddings == "separate":
            yield "its output layer has its own weights (`embeddings: separate`)"


def _write_transformers(exported: Exported, folder: Path) -> None:
    """Write the layout of Hugging Face, with our numbers of pieces."""
    weights = {name: weight.detach().float().clone() for name, weight in _their_weights(exported)}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    recipe, shape = exported.recipe, exported.recipe.model
    shared = shape.embeddings == "shared"
    special = {
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,
    }
    files = {
        "config.json": _their_config(exported) | special,
        "generation_config.json": {
            "num_beams": recipe.decoding.beam_size,
            "early_stopping": True,
            "min_new_tokens": 1,
            "max_length": _LONGEST // 2,
            # theirs is a power of the length
            "length_penalty": float(recipe.decoding.length_penalty > 0),
            "bad_words_ids": [[PAD], [UNK], [BOS]],
            **special,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": recipe.source,
            "target_lang": recipe.target,
            "separate_vocabs": not shared,
            "model_max_length": _LONGEST,
            "pad_token": SPECIALS[PAD],
            "unk_token": SPECIALS[UNK],
            "eos_token": SPECIALS[EOS],
        },
        "vocab.json": _numbered(exported.source),
    }
    if not shared:
        files["target_vocab.json"] = _numbered(exported.target)
    for name, values in files.items():
        text = json.dumps(values, indent=1, ensure_ascii=False)
        (folder / name).write_text(text + "\n", encoding="utf-8")


def _numbered(vocabulary: Vocabulary) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(_pieces(vocabulary))}


def _their_weights(exported: Exported) -> Iterator[tuple[str, Tensor]]:
    """Yield all weights under their names."""
    model, shape = exported.model, exported.recipe.model
    parameters = dict(model.named_parameters())
    for ours, theirs in names_in_layers(shape):
        yield from zip(theirs, parameters[ours].chunk(len(theirs)), strict=True)
    for ours, theirs in TABLES.items():
        if ours in parameters:
            yield SHARED if shape.embeddings == "shared" else theirs, parameters[ours]
    bias = model.output_bias
    yield BIAS, torch.zeros(1, len(exported.target)) if bias is None else bias[None]
    for side in ("encoder", "decoder"):
        yield POSITIONS.format(side=side), _positions(model)


def _their_config(exported: Exported) -> Values:
    shape = exported.recipe.model
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": len(exported.source),
        "decoder_vocab_size": len(exported.target),
        "d_model": shape.model_dim,
        "encoder_layers": shape.encoder_layers,
        "decoder_layers": shape.decoder_layers,
        "encoder_attention_heads": shape.heads_of("source")[0],
        "decoder_attention_heads": shape.heads,
        "encoder_ffn_dim": shape.feedforward_dim,
        "decoder_ffn_dim": shape.feedforward_dim,
        "activation_function": shape.feed_forward,
        "dropout": shape.dropout,
        "attention_dropout": shape.attention_dropout,
        "activation_dropout": shape.activation_dropout,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": shape.embeddings == "shared",
        "tie_word_embeddings": True,
        "max_position_embeddings": _LONGEST,
        "is_encoder_decoder": True,
    }


def _write_ctranslate2(exported: Exported, folder: Path) -> None:
    """Write a model of CTranslate2; its pieces are the strings of ours."""
    try:
        from ctranslate2.specs import TransformerSpec
        from ctranslate2.specs.common_spec import Activation
    except ImportError:
        do = "pip install ctranslate2"
        raise SynmtError("--to ctranslate2 needs the package ctranslate2", do=do) from None

    model, shape = exported.model, exported.recipe.model
    spec: Any = TransformerSpec.from_config(
        (len(model.encoder), len(model.decoder)),
        shape.heads,
        pre_norm=shape.norm == "pre",
        activation=Activation[shape.feed_forward.upper()],
    )
    spec.encoder.num_heads = np.int16(shape.heads_of("source")[0])
    parts = (
        (spec.encoder, spec.encoder.embeddings[0], model.source_embedding, model.encoder),
        (spec.decoder, spec.decoder.embeddings, model.target_embedding, model.decoder),
    )
    for theirs, table, embedding, layers in parts:
        table.weight = _array(embedding.table.weight)
        theirs.position_encodings.encodings = _array(_positions(model))
        for layer, ours in zip(theirs.layer, layers, strict=True):
            _layer(layer, ours)
    if shape.norm == "pre":
        _norm(spec.encoder.layer_norm, model.encoder_norm)
        _norm(spec.decoder.layer_norm, model.decoder_norm)
    spec.decoder.projection.weight = _array(model.output_weight)
    if model.output_bias is not None:
        spec.decoder.projection.bias = _array(model.output_bias)
    spec.register_source_vocabulary(_pieces(exported.source))
    spec.register_target_vocabulary(_pieces(exported.target))
    spec.config.bos_token, spec.config.eos_token = SPECIALS[BOS], SPECIALS[EOS]
    spec.config.unk_token, spec.config.decoder_start_token = SPECIALS[UNK], SPECIALS[BOS]
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


_WRITERS = {"transformers": _write_transformers, "ctranslate2": _write_ctranslate2}


def _pieces(vocabulary: Vocabulary) -> list[str]:
    """List all pieces: other programs know them by name."""
    return vocabulary.pieces(range(len(vocabulary)))


def _positions(model: Transformer) -> Tensor:
    """Return the first positions that are added to the embeddings: (T, D)."""
    embedding = model.source_embedding
    assert embedding.waves is not None
    return embedding.waves(_LONGEST, embedding.table.embedding_dim)


def _layer(theirs: Any, ours: Any) -> None:
    first, *middle, last = (residual.norm for residual in ours.residuals)
    _linears(theirs.self_attention.linear, ours.self_attention.project, ours.self_attention.output)
    _norm(theirs.self_attention.layer_norm, first)
    if middle:
        cross = ours.cross_attention
        _linears(theirs.attention.linear, cross.query, cross.key_value, cross.output)
        _norm(theirs.attention.layer_norm, middle[0])
    network = ours.feed_forward
    _linears((theirs.ffn.linear_0, theirs.ffn.linear_1), network.inner, network.output)
    _norm(theirs.ffn.layer_norm, last)


def _linears(theirs: Any, *ours: Any) -> None:
    for linear, layer in zip(theirs, ours, strict=True):
        linear.weight, linear.bias = _array(layer.weight), _array(layer.bias)


def _norm(theirs: Any, ours: Any) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().numpy()
