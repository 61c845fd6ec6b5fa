"""The section of a recipe for the network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from synmt.recipe.data import Positive, Rate, StrictModel, refuse

_NAMES = ("encoder_layers", "decoder_layers", "model_dim", "feedforward_dim", "heads")
_SIZES = {
    "tiny": (4, 4, 128, 256, 4),
    "small": (3, 3, 256, 1024, 4),
    "base": (6, 6, 512, 2048, 8),
    "big": (6, 6, 1024, 4096, 16),
}
_LSTM_SIZES = {"tiny": (1, 1, 128), "small": (2, 2, 256), "base": (2, 2, 512), "big": (2, 2, 1024)}
"""The numbers that `size` provides; those of an lstm are the first of the names."""

WIDEST, DEEPEST = 1 << 20, 1000
"""Larger sizes and more layers fit into no memory; PyTorch's own errors come late, or never."""

_Part = Annotated[str, Field(strict=True, min_length=1)]


class ModelRecipe(StrictModel):
    """The network. `size` provides the numbers that are not set; keys whose meaning begins with
    `lstm:` or `transformer:` are for this architecture only."""

    architecture: Literal["transformer", "lstm"] = "transformer"
    """The kind of network."""
    size: Literal["tiny", "small", "base", "big"] = "base"
    """of a transformer: tiny 4+4 layers 128/256 4 heads, small 3+3 256/1024 4, base 6+6 512/2048 8,
    big 6+6 1024/4096 16; of an
    lstm: tiny 1+1 layers 128, small 2+2 256, base 2+2 512, big 2+2 1024."""
    encoder_layers: int = Field(default=6, ge=1, le=DEEPEST)
    """Layers of the encoder."""
    decoder_layers: int = Field(default=6, ge=1, le=DEEPEST)
    """Layers of the decoder."""
    model_dim: int = Field(default=512, ge=2, le=WIDEST)
    """Width of each layer's input and output; an lstm encoder has half of it in each direction."""
    embedding_dim: int = Field(default=0, ge=0, le=WIDEST)
    """lstm: width of the embeddings and of the attentional state; 0 is model_dim."""
    feedforward_dim: int = Field(default=2048, ge=1, le=WIDEST)
    """transformer: inner width of the feed-forward sub-layer."""
    heads: Positive = 8
    """transformer: attention heads per layer."""
    encoder_heads: tuple[Annotated[int, Field(ge=1, strict=True)], ...] = Field(
        default=(), strict=False
    )
    """transformer: attention heads of each encoder layer, first to last, if they are not all
    `heads`."""
    dropout: Rate = 0.1
    """Dropout on embeddings and sub-layer outputs; in an lstm between layers and on the attentional
    state."""
    initial_range: float = Field(default=0.04, gt=0)
    """lstm: weights are initialized from U(-initial_range, initial_range)."""
    attention_dropout: Rate = 0.0
    """transformer: dropout on attention weights."""
    activation_dropout: Rate = 0.0
    """transformer: dropout inside the feed-forward sub-layer."""
    norm: Literal["post", "pre"] = "post"
    """transformer: layer norm after each residual sum, as in the original paper, or before each
    sub-layer."""
    norm_kind: Literal["layer", "rms"] = "layer"
    """transformer: layer norm, or RMSNorm (Zhang & Sennrich, 2019), which subtracts no mean and has
    no bias."""
    positions: Literal["sinusoid", "vaswani", "rotary", "alibi", "none"] = "sinusoid"
    """transformer: sinusoids added to the embeddings, with the wavelengths of Tensor2Tensor or
    (vaswani) of the paper and Marian; queries and keys of self-attention turned by their positions
    (Su et al., 2021); a penalty on distance in self-attention (Press et al., 2022); or nothing."""
    feed_forward: Literal["relu", "gelu", "swish", "swiglu"] = "relu"
    """transformer: the function inside the feed-forward sub-layer; swiglu is a gate without biases
    (Shazeer, 2020)."""
    output_bias: bool = False
    """transformer: add a learned number for each piece to the logits."""
    embeddings: Literal["shared", "tied", "separate"] = "shared"
    """shared: one matrix for source, target and output; tied: one for target and output; separate:
    three."""
    init: Path | None = Field(default=None, strict=False)
    """The folder of a finished run, or a model of Hugging Face (`hf:Helsinki-NLP/opus-mt-en-de`, or
    its folder): its weights are the initial ones, its vocabulary and truecase models are used, and
    its network as far as the recipe has no `size` and does not describe it. Weights that only this
    model has are initialized as usual."""
    init_except: tuple[_Part, ...] = Field(default=(), strict=False)
    """Parts that do not take the weights of `init`, such as `encoder.1`, `decoder` or `embeddings`.
    Without the embeddings, a new vocabulary is learned."""
    freeze: tuple[_Part, ...] = Field(default=(), strict=False)
    """Parts that are not trained, such as `encoder`, `decoder.1` (layers count from 1) or
    `embeddings`."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_size(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        architecture = values.get("architecture", "transformer")
        if foreign := sorted(_foreign(architecture) & values.keys()):
            raise ValueError(f"{', '.join(foreign)}: not for architecture: {architecture}")
        if values.get("init") and "size" not in values:
            # they are those of the other run
            return values
        sizes = _LSTM_SIZES if architecture == "lstm" else _SIZES
        preset = sizes.get(str(values.get("size", "base")), ())
        return {**dict(zip(_NAMES, preset, strict=False)), **values}

    def heads_of(self, side: str) -> tuple[int, ...]:
        """List the number of attention heads of each layer of a side; a layer of an lstm counts as
        one."""
        if self.architecture == "lstm":
            return (1,) * (self.decoder_layers if side == "target" else self.encoder_layers)
        if side == "target":
            return (self.heads,) * self.decoder_layers
        return self.encoder_heads or (self.heads,) * self.encoder_layers

    @model_serializer(mode="wrap")
    def _own_values(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out keys of the other architecture, which would be refused when the recipe is read
        again."""
        foreign = _foreign(self.architecture)
        return {name: value for name, value in write(self).items() if name not in foreign}

    @model_validator(mode="after")
    def _numbers_fit(self) -> ModelRecipe:
        is_lstm = self.architecture == "lstm"
        refuse(
            (
                is_lstm and self.model_dim % 2,
                f"model_dim {self.model_dim} is odd: the directions of an lstm halve it",
            ),
        )
        if is_lstm:
            return self
        numbers, width = {self.heads, *self.encoder_heads}, self.model_dim
        refuse(
            (
                len(self.encoder_heads) not in (0, self.encoder_layers),
                f"encoder_heads needs a number for each of {self.encoder_layers} encoder layers",
            ),
            (
                any(width % heads for heads in numbers),
                f"model_dim {width} cannot be divided among {', '.join(map(str, numbers))} heads",
            ),
            (
                self.positions in ("sinusoid", "vaswani") and width % 2,
                f"model_dim {width} is odd: sinusoidal positions come in pairs",
            ),
            (
                self.positions == "rotary" and any(width // heads % 2 for heads in numbers),
                f"the width of heads (model_dim {width}) is odd: rotary turns pairs",
            ),
        )
        return self


def _foreign(architecture: str) -> set[str]:
    """List the keys that belong to the other architecture, by their meanings."""
    other = "transformer:" if architecture == "lstm" else "lstm:"
    fields = ModelRecipe.model_fields.items()
    return {name for name, field in fields if (field.description or "").startswith(other)}
