"""Sentences per second at beam 4: synmt, Hugging Face `generate` and CTranslate2, with one and the same model.

All three have the same weights, made so that the model copies its source: translations are as long as the sources, and
the same everywhere, which is checked. The systems take turns, so that other work on the machine hits all of them; each
takes its own best batch size out of several. Ratios are of the medians over the rounds.

    python benchmarks/translate_throughput.py --sentences 256 --rounds 5 --threads 2
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from marian import marian_model
from torch import Tensor

from synmt.data.batch import collate_source
from synmt.data.vocabulary import EOS
from synmt.decode.beam import search
from synmt.decode.constraints import length_limits
from synmt.decode.ensemble import Member
from synmt.decode.options import SearchOptions
from synmt.model.build import build
from synmt.model.embedding import sinusoids
from synmt.model.transformer import Transformer
from synmt.recipe.schema import ModelRecipe, SyntaxRecipe

ALPHA = 0.6
"""Of the length penalty; each system has its own formula."""
RATIO, EXTRA = 1.5, 20
"""No translation has more than RATIO * source pieces + EXTRA."""
SHARPNESS = 20.0
"""How strictly attention keeps to its position."""
NOISE = 0.02
"""What is left of all other sub-layers."""


Sentences = list[list[int]]


@dataclass(frozen=True)
class System:
    """translate: sentences of like length, the longest translation allowed -> translations."""

    name: str
    translate: Callable[[Sentences, int], Sentences]

    def run(self, sentences: Sentences, batch_size: int) -> Sentences:
        """Translate everything, longest first."""
        order = sorted(range(len(sentences)), key=lambda number: -len(sentences[number]))
        found: Sentences = [[] for _ in sentences]
        for first in range(0, len(order), batch_size):
            numbers = order[first : first + batch_size]
            batch = [sentences[number] for number in numbers]
            limit = int(RATIO * len(batch[0]) + EXTRA)
            for number, translation in zip(numbers, self.translate(batch, limit), strict=True):
                found[number] = translation
        return found


def main() -> None:
    """Let the systems take turns and print what they did."""
    options = _options()
    torch.set_num_threads(options.threads)
    sentences = draw_sentences(options.sentences, options.pieces)
    model = copying_model(options.size, options.pieces)
    marian = as_marian(model, options.size, options.pieces)
    systems = [ours(model, options.beam), hugging_face(marian, options.beam)]
    systems.append(ctranslate2(marian, options.beam, options.threads))
    chosen = {}
    for system in systems:
        assert system.run(sentences[:16], 16) == sentences[:16], f"{system.name} does not copy"
        speeds = {size: timed(system, sentences, size)[0] for size in options.batch_sizes}
        chosen[system.name] = min(speeds, key=speeds.__getitem__)
    times: dict[str, list[tuple[float, float]]] = {system.name: [] for system in systems}
    for _ in range(options.rounds):
        for system in systems:
            times[system.name].append(timed(system, sentences, chosen[system.name]))
    report(times, chosen, options.sentences)


def timed(system: System, sentences: Sentences, batch_size: int) -> tuple[float, float]:
    """Measure seconds by the clock and seconds of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    system.run(sentences, batch_size)
    return time.perf_counter() - wall, time.process_time() - cpu


def report(times: dict[str, list[tuple[float, float]]], chosen: dict[str, int], count: int) -> None:
    """Print medians and ratios to Hugging Face."""
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in times.items()}
    base = medians["hugging face"]
    print(f"{'system':14} {'batch':>5} {'sentences/s':>12} {'ratio':>6} {'CPU s':>7} {'CPU ratio':>9}")
    for name, (wall, cpu) in medians.items():
        speed = count / wall
        print(f"{name:14} {chosen[name]:5} {speed:12.1f} {base[0] / wall:6.2f} {cpu:7.2f} {base[1] / cpu:9.2f}")


def draw_sentences(count: int, pieces: int) -> Sentences:
    """Draw sentences whose lengths are those of image captions: 6 to 40 pieces, 15 on average."""
    random = np.random.default_rng(1)
    lengths = random.gamma(6.0, 2.0, count).astype(int).clip(3, 37) + 3
    return [random.integers(EOS + 1, pieces, length).tolist() for length in lengths]


def ours(model: Transformer, beam: int) -> System:
    """Search with synmt."""

    def translate(batch: Sentences, limit: int) -> Sentences:
        source = collate_source([np.array(sentence) for sentence in batch])
        limits = length_limits(source.mask.sum(1) - 1, ratio=RATIO, extra=EXTRA)
        found = search([Member(model, source, {})], SearchOptions(beam_size=beam, length_penalty=ALPHA), limits=limits)
        return [best[0].ids for best in found]

    return System("synmt", translate)


def hugging_face(marian: Any, beam: int) -> System:
    """Search with `generate`."""

    def translate(batch: Sentences, limit: int) -> Sentences:
        source = collate_source([np.array(sentence) for sentence in batch])
        with torch.inference_mode():
            found = marian.generate(
                input_ids=source.ids,
                attention_mask=source.mask.long(),
                num_beams=beam,
                length_penalty=ALPHA,
                max_new_tokens=limit,
            )
        return [[piece for piece in row if piece > EOS] for row in found.tolist()]

    return System("hugging face", translate)


def ctranslate2(marian: Any, beam: int, threads: int) -> System:
    """Search with CTranslate2 in float32."""
    import ctranslate2
    from ctranslate2.converters.transformers import BartLoader

    marian.config.normalize_before = marian.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(marian)
    names = ["<pad>", "<unk>", "<s>", "</s>", *map(str, range(EOS + 1, marian.config.vocab_size))]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token = spec.config.decoder_start_token = "<s>"
    spec.config.eos_token, spec.config.unk_token = "</s>", "<unk>"
    with tempfile.TemporaryDirectory() as folder:
        spec.validate()
        spec.save(folder)
        translator = ctranslate2.Translator(folder, inter_threads=1, intra_threads=threads, compute_type="float32")

    def translate(batch: Sentences, limit: int) -> Sentences:
        found = translator.translate_batch(
            [[*map(str, sentence), "</s>"] for sentence in batch],
            beam_size=beam,
            length_penalty=ALPHA,
            max_decoding_length=limit,
        )
        return [[int(piece) for piece in result.hypotheses[0]] for result in found]

    return System("ctranslate2", translate)


def as_marian(model: Transformer, size: str, pieces: int) -> Any:
    """Give the same weights to MarianMTModel."""
    shape = ModelRecipe.model_validate({"size": size})
    marian = marian_model(shape, pieces).eval()
    weights = {name: tensor for name, tensor in marian.state_dict().items() if "final_logits_bias" in name}
    for name, tensor in model.state_dict().items():
        weights.update(_renamed(name, tensor))
    positions = sinusoids(512, shape.model_dim)
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


def copying_model(size: str, pieces: int) -> Transformer:
    """Build a model that repeats its source: the cross-attention of layer 1 looks at its own position."""
    torch.manual_seed(1)
    recipe = ModelRecipe.model_validate({"size": size, "embeddings": "shared"})
    model = build(recipe, SyntaxRecipe(), source_pieces=pieces, target_pieces=pieces)
    assert isinstance(model, Transformer)
    query, key, free = _position_finder(recipe.model_dim, recipe.model_dim // recipe.heads)
    attention = model.decoder[0].cross_attention
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(".output.weight"):
                weight.mul_(NOISE)
        model.output.weight[:, free] = 0
        attention.query.weight.copy_(query.repeat(recipe.heads, 1))
        value = torch.eye(recipe.model_dim)
        attention.key_value.weight.copy_(torch.cat((key.repeat(recipe.heads, 1), value)))
        attention.output.weight.copy_(4 * value)
    return model.eval()


def _position_finder(dim: int, head: int) -> tuple[Tensor, Tensor, Tensor]:
    """Make q and k that agree where positions are equal: (d, D), (d, D), and the coordinates they read.

    The fastest sines and cosines add up to the cosines of the distance; a constant (the slowest cosine) takes so much
    away that neighbours are below 0. The slowest sine, which is 0, undoes what layer norm has taken away.
    """
    half, count = dim // 2, head // 2 - 1
    fast = torch.cat((torch.arange(count), half + torch.arange(count)))  # (d - 2,)
    zero, one = half - 1, dim - 1
    key = torch.zeros(head, dim)  # (d, D)
    key[torch.arange(2 * count), fast] = math.sqrt(SHARPNESS)
    key[2 * count, one] = math.sqrt(SHARPNESS)
    key[: 2 * count + 1, zero] = -math.sqrt(SHARPNESS)
    query = key.clone()
    neighbour = sinusoids(2, dim)[:, fast].prod(0).sum()
    query[2 * count] *= -(count + neighbour) / 2
    return query, key, torch.cat((fast, torch.tensor([zero, one])))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", help="tiny, small, base or big")
    parser.add_argument("--pieces", type=int, default=8000, help="size of the vocabulary")
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[16, 32, 64, 128])
    return parser.parse_args()


if __name__ == "__main__":
    main()
