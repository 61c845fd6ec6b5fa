"""The recipe of one experiment: every key, its meaning and its default."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from synmt.options import MAX_BEAM, MAX_PENALTY
from synmt.recipe.corpus import CorpusRecipe
from synmt.recipe.data import (
    FilterRecipe,
    ParserRecipe,
    StrictModel,
    TasksRecipe,
    TextRecipe,
    VocabularyRecipe,
    parser_model,
    refuse,
)
from synmt.recipe.model import ModelRecipe

LONGEST_NAME = 200
"""Letters of the name of a recipe: a file system takes 255, and seeds and temporary folders add to
it."""

SEEDS = 1 << 64
"""How many different seeds PyTorch can be given, from 0."""

_Step = Annotated[int, Field(ge=1)]
_Decay = Annotated[float, Field(ge=0, lt=1)]
_Metric = Literal["bleu", "bleu1", "bleu2", "bleu3", "chrf", "chrf++", "ter", "ribes", "beer"]


class VariantRecipe(StrictModel):
    """One variant and its place in the model. All other keys are options of the variant."""

    model_config = ConfigDict(extra="allow")

    name: str
    """A file in synmt/model/variants, or the dotted path of another module."""
    side: Literal["source", "target"] = "source"
    """Encoder or decoder."""
    layers: tuple[int, ...] | Literal["all"] | None = None
    """The layers it edits, counted from 1; by default those on its page."""
    heads: int | Literal["all"] | None = None
    """Number of heads it takes in each layer, from the first free one; by default that on its
    page."""
    loss_weight: float = Field(default=1.0, ge=0)
    """Weight of its auxiliary loss, if it has one."""
    loss_steps: tuple[_Step, _Step] | None = None
    """The first and the last step of training in which its auxiliary loss counts, from 1; by
    default all."""

    warm: int = Field(default=0, ge=0)
    """Number of steps over which its edit is blended in, so that training starts from the model
    without it, such as a pretrained one."""

    @field_validator("loss_steps")
    @classmethod
    def _steps_in_order(cls, steps: tuple[int, int] | None) -> tuple[int, int] | None:
        refuse((steps and steps[0] > steps[1], "the first step comes after the last one"))
        return steps

    @property
    def options(self) -> dict[str, Any]:
        """The options of the variant."""
        return dict(self.model_extra or {})


class SyntaxRecipe(StrictModel):
    """The variants; without any, the model is the plain baseline."""

    variants: tuple[VariantRecipe, ...] = ()
    """Variants in order; two in the same layer take consecutive heads."""


class TrainingRecipe(StrictModel):
    """How the model is trained."""

    max_steps: int = Field(default=100_000, ge=0)
    """Number of updates; 0, with `use: last`, tests the model of `model.init` as it is."""
    pretraining: int = Field(default=0, ge=0)
    """Number of steps at the beginning that train on the auxiliary losses of variants alone."""
    batch_tokens: Annotated[int, Field(ge=1)] | Literal["auto"] = 4096
    """Maximum batch size: sentences times the longest side in pieces. BPE dropout then makes
    sentences longer. auto: the largest power of two from 1,024 to 32,768 that fits in memory."""
    batch_sentences: int = Field(default=0, ge=0)
    """Maximum batch size in sentences; 0 sets no limit."""
    accumulate: int = Field(default=1, ge=1)
    """Number of batches whose gradients are added up for one update."""
    learning_rate: float = Field(default=7e-4, gt=0)
    """The peak rate for `inverse_sqrt`, the factor for `noam`, the rate after warm-up for
    `constant` and `plateau`."""
    pretrained_rate: float = Field(default=1.0, gt=0, le=1)
    """Factor on the learning rate of the weights that come from `model.init`."""
    schedule: Literal["inverse_sqrt", "noam", "constant", "plateau"] = "inverse_sqrt"
    """Learning rate schedule. Formulas: synmt/training/optimizer.py."""
    decay: float = Field(default=0.5, gt=0, lt=1)
    """plateau: factor on the learning rate after each validation without improvement in `best`."""
    max_decays: int = Field(default=5, ge=0)
    """plateau: maximum number of learning rate decays; training ends when another decay is due."""
    warmup: int = Field(default=8000, ge=0)
    """Number of warm-up steps, until the learning rate peaks."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """muon: Muon (Jordan et al., 2024) for the matrices of linear layers, with steps as long as
    Adam's (Liu et al., 2025), and AdamW for all other weights."""
    betas: tuple[_Decay, _Decay] = (0.9, 0.98)
    """Adam's decay rates."""
    epsilon: float = Field(default=1e-9, gt=0)
    """Adam's epsilon."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay (AdamW)."""
    shard_optimizer: bool = False
    """Under `torchrun`, each process keeps Adam's state of a part of the weights only (ZeRO, stage
    1)."""
    clip_norm: float = Field(default=0.0, ge=0)
    """Maximum norm of the gradient; 0 disables clipping."""
    ema: _Decay = 0.0
    """Decay of a moving average of the weights, which is validated, stored and used in their place;
    0: none. Early in training it is less: (1 + step) / (10 + step)."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Probability mass spread evenly over all pieces (Szegedy et al., 2016)."""
    precision: Literal["float32", "bf16", "fp16"] = "float32"
    """Precision of autocast; the weights stay float32."""
    deterministic: bool = False
    """On a GPU, add up in a fixed order, so that a seed gives the same weights again; slower. On a
    CPU it does so anyway."""
    compile: bool = False
    """Compile the model with `torch.compile`."""
    cuda_graphs: bool = False
    """On a GPU, record the steps of a Transformer, one for each shape of a batch, and replay them:
    faster for small models, which leave a GPU idle. Batches are filled up to few shapes."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …, mps"""
    seed: int = Field(default=1, ge=0, lt=SEEDS)
    """Seed of the initial weights, the dropout and the order of the data."""
    log_every: int = Field(default=50, ge=1)
    """Steps between records in the log."""
    validate_every: int = Field(default=1000, ge=1)
    """Steps between validations."""
    save_every: int = Field(default=1000, ge=1)
    """Steps between checkpoints; each validation also saves one."""
    keep: int = Field(default=1, ge=1)
    """Number of most recent checkpoints to keep."""
    average: int = Field(default=1, ge=1)
    """Number of most recent checkpoints whose weights are averaged for `use: average`."""
    validation_beam_size: int = Field(default=1, ge=0, le=MAX_BEAM)
    """Beam size for the BLEU of a validation; 0 leaves BLEU out."""
    best: Literal["loss"] | _Metric = "loss"
    """Criterion for the best checkpoint and for early stopping: the loss or a metric."""
    patience: int = Field(default=0, ge=0)
    """Number of validations without improvement after which training stops; 0 disables early
    stopping."""
    use: Literal["best", "last", "average"] = "best"
    """Which weights become the final ones: they translate the test sets, and `synmt translate` uses
    them."""

    @model_validator(mode="after")
    def _has_what_it_uses(self) -> TrainingRecipe:
        refuse(
            (
                self.use == "average" and self.average < 2,
                "`use: average` needs `average: 2` or more",
            ),
            (
                not self.max_steps and self.use != "last",
                "`max_steps: 0` needs `use: last`, since nothing is validated",
            ),
            (
                self.best != "loss" and not self.validation_beam_size,
                f"`best: {self.best}` needs a `validation_beam_size` of 1 or more",
            ),
            (
                # gradients stay where a graph writes those of the next batch
                self.cuda_graphs and (self.compile or self.accumulate > 1),
                "`cuda_graphs` needs `accumulate: 1`, without `compile`",
            ),
            (
                self.shard_optimizer and (self.optimizer == "muon" or self.ema > 0),
                "`shard_optimizer` needs `optimizer: adamw`, without `ema`",
            ),
        )
        return self


class DecodingRecipe(StrictModel):
    """Beam search."""

    beam_size: int = Field(default=4, ge=1, le=MAX_BEAM)
    """Hypotheses per sentence; 1 is greedy search."""
    length_penalty: float = Field(default=0.6, ge=0, le=MAX_PENALTY)
    """alpha of Wu et al. (2016): scores are divided by ((5 + length) / 6) ** alpha."""
    max_length_ratio: float = Field(default=1.5, gt=0)
    """Maximum length of a translation in pieces: max_length_ratio × source length +
    max_length_extra."""
    max_length_extra: int = Field(default=20, ge=0)
    """Maximum length of a translation in pieces: max_length_ratio × source length +
    max_length_extra."""
    batch_size: int = Field(default=128, ge=1)
    """Sentences per batch."""
    shortlist: int = Field(default=0, ge=0)
    """Number of target pieces that each piece of the source may become, learned from the training
    text: faster, since others are not computed. 0: all pieces of the vocabulary."""


class EvaluationRecipe(StrictModel):
    """How the test sets are scored."""

    metrics: tuple[_Metric, ...] = ("bleu", "chrf", "ter")
    """Metrics of `synmt score` that need only references; `beer` is left out where BEER_HOME does
    not name its folder."""
    tokenize: str = "13a"
    """sacreBLEU's tokenization for BLEU; `none` for tokenized text."""
    lowercase: bool = False
    """Compare in lower case."""
    on: Literal["text", "tokens"] = "text"
    """text: score joined translations against the raw reference. tokens: score the words that the
    model writes against the reference tokenized in the same way (needs `tokenize: none`); such
    scores are marked `on tokens`."""


class Recipe(StrictModel):
    """One experiment."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[\w][\w.+-]*$")
    """The run folder is `runs/<name>`; by default the name of the file without `.yaml`."""
    source: str
    """The source language, as in the corpus's file names."""
    target: str
    """The target language."""
    corpus: CorpusRecipe
    """The parallel text: training, validation and test sets."""
    text: TextRecipe = TextRecipe()
    """Tokenization of both sides, and their case, before all other steps; by default none."""
    target_text: TextRecipe | None = None
    """Tokenization and case of the target, if different from the source; replaces `text` as a
    whole."""
    filters: FilterRecipe = FilterRecipe()
    """Which sentence pairs are left out."""
    parser: ParserRecipe = ParserRecipe()
    """The parser of the source, or the trees that replace its own."""
    target_parser: ParserRecipe = ParserRecipe()
    """The same for the target, for variants on that side: they learn from its trees in training
    only."""
    tasks: TasksRecipe = TasksRecipe()
    """Trees as text, in addition to the sentence pairs or in their place."""
    vocabulary: VocabularyRecipe = VocabularyRecipe()
    """The pieces that text is segmented into."""
    model: ModelRecipe = ModelRecipe.model_validate({})
    """Architecture and sizes."""
    syntax: SyntaxRecipe = SyntaxRecipe()
    """The variants that add syntax to the model."""
    training: TrainingRecipe = TrainingRecipe()
    """Steps, batches, learning rate, checkpoints."""
    decoding: DecodingRecipe = DecodingRecipe()
    """How test sets are translated, and other text by default."""
    evaluation: EvaluationRecipe = EvaluationRecipe()
    """How translations of the test sets are scored."""

    def text_of(self, side: Literal["source", "target"]) -> TextRecipe:
        """Return how the text of a side is tokenized."""
        return self.text if side == "source" or self.target_text is None else self.target_text

    def parser_of(self, side: Literal["source", "target"]) -> ParserRecipe:
        """Return the section for the parser of a side."""
        return self.parser if side == "source" else self.target_parser

    def language_of(self, side: Literal["source", "target"]) -> str:
        """Return the language of a side."""
        return self.source if side == "source" else self.target

    @model_validator(mode="after")
    def _chooses_parsers(self) -> Recipe:
        # a run stores which model it reads, so that `auto` cannot mean another one later
        for section, language in (("parser", self.source), ("target_parser", self.target)):
            parser = getattr(self, section)
            model = parser_model(parser.model, language)
            # the recipe is frozen for all others
            object.__setattr__(self, section, parser.model_copy(update={"model": model}))
        return self

    @model_validator(mode="after")
    def _sections_agree(self) -> Recipe:
        weighted = any(item.weight != 1 or item.tag for item in self.corpus.train)
        refuse(
            (
                self.model.embeddings == "shared" and not self.vocabulary.joint,
                "`model.embeddings: shared` needs `vocabulary.joint: true`",
            ),
            *(
                (
                    getattr(self.training, key) and self.model.architecture == "lstm",
                    f"`training.{key}` does not work for an lstm, whose steps are a loop",
                )
                for key in ("compile", "cuda_graphs")
            ),
            (
                self.tasks.trees != "none" and weighted,
                f"`tasks.{self.tasks.key}` needs a training text without weights and tags",
            ),
            (
                self.evaluation.on == "tokens" and self.evaluation.tokenize != "none",
                "`evaluation.on: tokens` needs `evaluation.tokenize: none`",
            ),
        )
        return self
