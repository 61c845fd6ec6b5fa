"""Marian's Transformers, in the layout of Hugging Face (`MarianMTModel`): their names for the parts
of a model, and their files as the files of a run.

Their decoder usually begins with the padding piece, which no translation contains: it becomes our
BOS. Our padding is then a new piece, whose logit is low enough for a probability of 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Annotated

import torch
from pydantic import Field
from sentencepiece import SentencePieceProcessor
from torch import Tensor
from typing_extensions import NotRequired, TypedDict

from synmt.arrays import Texts, Values
from synmt.data.batch import Tensors
from synmt.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, PieceTable, Vocabulary
from synmt.errors import SynmtError, UsageError
from synmt.exchange.hub import CONFIG, WEIGHTS, weights_of
from synmt.files.json_files import read_json, read_json_if_there
from synmt.files.schemas import may_have_more
from synmt.model.build import build_for
from synmt.model.seq2seq import WAVES, Seq2Seq
from synmt.recipe.load import check_recipe
from synmt.recipe.model import ModelRecipe
from synmt.recipe.schema import Recipe

_ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
_OTHERS = {
    "mbart": "learned positions, and norms before the sub-layers",
    "m2m_100": "norms before the sub-layers, and one vocabulary for all languages",
    "t5": "its own relative positions, and no biases",
}
_NO_LOGIT = -100.0
"""e^-100 is 0 next to other pieces, and small enough for label smoothing."""

_Size = Annotated[int, Field(ge=1)]


@may_have_more
class _Config(TypedDict):
    """What is read of config.json; its defaults are those of transformers."""

    model_type: str
    vocab_size: _Size
    decoder_vocab_size: NotRequired[_Size | None]
    d_model: _Size
    encoder_layers: _Size
    decoder_layers: _Size
    encoder_attention_heads: _Size
    decoder_attention_heads: _Size
    encoder_ffn_dim: _Size
    decoder_ffn_dim: _Size
    activation_function: str
    pad_token_id: int
    eos_token_id: int
    decoder_start_token_id: int
    max_position_embeddings: NotRequired[_Size]
    scale_embedding: NotRequired[bool]
    share_encoder_decoder_embeddings: NotRequired[bool]
    tie_word_embeddings: NotRequired[bool]
    dropout: NotRequired[float]
    attention_dropout: NotRequired[float]
    activation_dropout: NotRequired[float]
    num_beams: NotRequired[int]


@may_have_more
class _TokenizerConfig(TypedDict, total=False):
    source_lang: str | None
    target_lang: str | None


@may_have_more
class _Generation(TypedDict, total=False):
    num_beams: int | None


@dataclass(frozen=True)
class Pretrained:
    """A model of Hugging Face as a run needs it."""

    recipe: Recipe
    source: Vocabulary
    target: Vocabulary
    model: Seq2Seq


def read_marian(folder: Path, name: str) -> Pretrained:
    """Read a folder with the layout of Hugging Face; raises SynmtError for a model that is not
    Marian's, or of which files are missing or do not fit.

    name: of the model, as on the hub; its languages stand at the end.
    """
    config, weights = _read_config(folder), _weights(folder)
    recipe = _recipe(config, folder, name, _positions(weights, str(folder)))
    has_own = not config.get("share_encoder_decoder_embeddings", True)
    files = ["vocab.json", *["target_vocab.json"] * has_own]
    tables = [_Table.read(folder, file, config) for file in files]
    models = (_segmenter(folder / f"{side}.spm") for side in ("source", "target"))
    source, target = (
        PieceTable(table.pieces, model)
        for table, model in zip((tables[0], tables[-1]), models, strict=True)
    )
    model = build_for(recipe, source, target)
    _take(model, recipe, weights, tables, str(folder))
    return Pretrained(recipe, source, target, model)


def _read_config(folder: Path) -> _Config:
    where = str(folder / CONFIG)
    kind = read_json(folder / CONFIG, Values, do="").get("model_type")
    if kind != "marian":
        reason = f" ({_OTHERS[str(kind)]})" if kind in _OTHERS else ""
        raise SynmtError(
            f"a model of the kind '{kind}'{reason} cannot be read",
            where=where,
            allowed="Models of the kind 'marian', such as Helsinki-NLP/opus-mt-en-de",
        )
    config = read_json(folder / CONFIG, _Config, do="Copy the model's files again")
    refused = {
        "activation_function": config["activation_function"] not in _ACTIVATIONS,
        "encoder_ffn_dim is not decoder_ffn_dim": config["encoder_ffn_dim"]
        != config["decoder_ffn_dim"],
        "scale_embedding": not config.get("scale_embedding", False),
    }
    if problems := [key for key, is_refused in refused.items() if is_refused]:
        raise SynmtError(f"cannot be read: {', '.join(problems)}", where=where)
    return config


def _positions(weights: Mapping[str, Tensor], where: str) -> str:
    """Find which sinusoids the weights have; files without them have Marian's."""
    stored = weights.get(POSITIONS.format(side="encoder"))
    if stored is None:
        return "vaswani"
    for name, waves in WAVES.items():
        if torch.allclose(stored.float(), waves(*stored.shape), atol=1e-4):
            return name
    raise SynmtError("its positions are not sinusoids", where=where)


def _recipe(config: _Config, folder: Path, name: str, positions: str) -> Recipe:
    generation = read_json_if_there(folder / "generation_config.json", _Generation) or {}
    source, target = _languages(folder, name)
    shared = config.get("share_encoder_decoder_embeddings", True)
    tied = config.get("tie_word_embeddings", True)
    heads, decoder_heads = config["encoder_attention_heads"], config["decoder_attention_heads"]
    values = {
        "name": name,
        "source": source,
        "target": target,
        # where its text was is not known
        "corpus": {"folder": name},
        "vocabulary": {"kind": "unigram", "size": config["vocab_size"], "joint": shared},
        "filters": {"max_pieces": config.get("max_position_embeddings", 1024) - 1},
        "model": {
            "encoder_layers": config["encoder_layers"],
            "decoder_layers": config["decoder_layers"],
            "model_dim": config["d_model"],
            "feedforward_dim": config["decoder_ffn_dim"],
            "heads": decoder_heads,
            "encoder_heads": [heads] * config["encoder_layers"] * (heads != decoder_heads),
            "feed_forward": _ACTIVATIONS[config["activation_function"]],
            "positions": positions,
            "output_bias": True,
            "embeddings": "separate" if not tied else "shared" if shared else "tied",
            "dropout": config.get("dropout", 0.1),
            "attention_dropout": config.get("attention_dropout", 0.0),
            "activation_dropout": config.get("activation_dropout", 0.0),
        },
        "decoding": {"beam_size": generation.get("num_beams") or config.get("num_beams", 4)},
    }
    return check_recipe(values, where=str(folder / CONFIG))


def _languages(folder: Path, name: str) -> tuple[str, str]:
    """Find the languages in the tokenizer's configuration, or at the end of the name."""
    path = folder / "tokenizer_config.json"
    config = read_json_if_there(path, _TokenizerConfig) or {}
    stated = config.get("source_lang"), config.get("target_lang")
    source, target = stated if all(stated) else name.split("-")[-2:] if "-" in name else ("", "")
    if not source or not target:
        raise SynmtError(
            "the model's languages are unknown: source_lang and target_lang are missing",
            where=path,
            do='Write them into it: {"source_lang": "en", "target_lang": "de"}',
        )
    return source, target


def _segmenter(path: Path) -> SentencePieceProcessor:
    try:
        return SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):
        raise SynmtError("missing, or not a SentencePiece model", where=path) from None


@dataclass(frozen=True)
class _Table:
    """The pieces of a vocabulary after our special ones, and their rows in the tables of weights.

    rows: (V,), for all pieces, with the special ones first.
    """

    pieces: Texts
    rows: Sequence[int]

    @classmethod
    def read(cls, folder: Path, file: str, config: _Config) -> _Table:
        numbers = read_json(folder / file, dict[str, int], do="Copy the model's files again")
        if "<unk>" not in numbers:
            raise SynmtError("the piece <unk> is missing", where=folder / file)
        padding, end = config["pad_token_id"], config["eos_token_id"]
        start = config["decoder_start_token_id"]
        special = {PAD: padding, UNK: numbers["<unk>"], BOS: start, EOS: end}
        others = sorted((n, piece) for piece, n in numbers.items() if n not in special.values())
        rows = [special[number] for number in range(len(SPECIALS))] + [n for n, _ in others]
        return cls([piece for _, piece in others], rows)


def _weights(folder: Path) -> Tensors:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = weights_of(folder)
    if path is None:
        raise SynmtError(f"the weights are missing ({' or '.join(WEIGHTS)})", where=folder)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:
        raise SynmtError("holds more than weights, so it is not loaded", where=path) from None
    except (SafetensorError, RuntimeError, OSError, ValueError, EOFError) as error:
        raise SynmtError(f"cannot be read ({error})", where=path) from None


_ATTENTION = {
    "self_attention.project": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.output": ("self_attn.out_proj",),
    "feed_forward.inner": ("fc1",),
    "feed_forward.output": ("fc2",),
    "residuals.0.norm": ("self_attn_layer_norm",),
}
_PARTS = {
    "encoder": _ATTENTION | {"residuals.1.norm": ("final_layer_norm",)},
    "decoder": _ATTENTION
    | {
        "cross_attention.query": ("encoder_attn.q_proj",),
        "cross_attention.key_value": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
        "cross_attention.output": ("encoder_attn.out_proj",),
        "residuals.1.norm": ("encoder_attn_layer_norm",),
        "residuals.2.norm": ("final_layer_norm",),
    },
}
"""By our name for a part of a layer, theirs; several are joined in ours, one below the other."""

SHARED, BIAS = "model.shared.weight", "final_logits_bias"
"""Their names for the one table of pieces, and for the bias of the output layer."""
POSITIONS = "model.{side}.embed_positions.weight"
"""Their name for the sinusoids of a side."""
TABLES = {
    "source_embedding.table.weight": "model.encoder.embed_tokens.weight",
    "target_embedding.table.weight": "model.decoder.embed_tokens.weight",
    "output.weight": "lm_head.weight",
}
"""By our names for the tables of pieces, theirs."""


def names_in_layers(recipe: ModelRecipe) -> Iterator[tuple[str, list[str]]]:
    """Yield our name for each weight of the layers, with theirs."""
    for side, layers in (("encoder", recipe.encoder_layers), ("decoder", recipe.decoder_layers)):
        for layer in range(layers):
            for ours, theirs in _PARTS[side].items():
                for kind in ("weight", "bias"):
                    names = [f"model.{side}.layers.{layer}.{name}.{kind}" for name in theirs]
                    yield f"{side}.{layer}.{ours}.{kind}", names


@torch.no_grad()
def _take(
    model: Seq2Seq,
    recipe: Recipe,
    weights: Mapping[str, Tensor],
    tables: Sequence[_Table],
    where: str,
) -> None:
    """Copy their weights into a model; raises SynmtError if some are missing or do not fit."""
    parameters = dict(model.named_parameters())
    found = {
        ours: torch.cat([_weight(weights, name, where) for name in theirs])
        for ours, theirs in names_in_layers(recipe.model)
    }
    of_side = {"source_embedding.table.weight": tables[0]}
    begins_with_padding = tables[-1].rows[PAD] == tables[-1].rows[BOS]
    for ours in TABLES.keys() & parameters.keys():
        table = _weight(weights, TABLES[ours] if TABLES[ours] in weights else SHARED, where)
        found[ours] = _rows(table, of_side.get(ours, tables[-1]), where)
        found[ours][PAD] = found[ours][PAD] * (not begins_with_padding)
    bias = weights.get(BIAS)
    found["output_bias"] = torch.zeros_like(parameters["output_bias"])
    if bias is not None:
        found["output_bias"] = _rows(bias.flatten(), tables[-1], where)
    if begins_with_padding:
        found["output_bias"][PAD] = _NO_LOGIT
    for name, parameter in parameters.items():
        if found[name].shape != parameter.shape:
            raise UsageError(f"{name} does not fit config.json", where=where)
        parameter.copy_(found[name])


def _weight(weights: Mapping[str, Tensor], name: str, where: str) -> Tensor:
    if name not in weights:
        raise SynmtError(f"the weight {name} is missing", where=where)
    return weights[name]


def _rows(weight: Tensor, table: _Table, where: str) -> Tensor:
    """Bring the rows of their table into our order: (V', …) -> (V, …)."""
    if max(table.rows) >= len(weight):
        raise SynmtError("the vocabulary has more pieces than the table of weights", where=where)
    return weight[torch.tensor(table.rows)]
