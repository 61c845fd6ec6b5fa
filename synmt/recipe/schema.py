"""One experiment: every key of a recipe, its meaning and its default."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synmt.recipe.data import CorpusRecipe, FilterRecipe, ParserRecipe, Section, TasksRecipe, VocabularyRecipe
from synmt.recipe.model import ModelRecipe

_Decay = Annotated[float, Field(ge=0, lt=1)]


class VariantRecipe(BaseModel):
    """One variant: where it stands. All other keys are options of the variant itself."""

    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    name: str
    """A file of synmt/model/variants, or the dotted path of a module elsewhere."""
    side: Literal["source", "target"] = "source"
    """Encoder or decoder."""
    layers: tuple[int, ...] | Literal["all"] | None = None
    """The layers it edits, counted from 1; the paper's where none are given."""
    heads: int | Literal["all"] | None = None
    """How many heads of each layer it owns: the first that are free; the paper's number where none is given."""
    loss_weight: float = Field(default=1.0, ge=0)
    """Weight of its auxiliary loss, where it has one."""

    @property
    def options(self) -> dict[str, Any]:
        """The keys that the variant itself understands."""
        return dict(self.model_extra or {})


class SyntaxRecipe(Section):
    """The variants that edit attention; none makes a plain model."""

    variants: tuple[VariantRecipe, ...] = ()
    """In order; two in one layer take consecutive heads."""


class TrainingRecipe(Section):
    """How the model learns."""

    max_steps: int = Field(default=100_000, ge=1)
    """Updates."""
    batch_tokens: int = Field(default=4096, ge=1)
    """Largest batch: sentences times the longest side in pieces."""
    batch_sentences: int = Field(default=0, ge=0)
    """Largest batch in sentences; 0 does not look."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients make one update."""
    learning_rate: float = Field(default=7e-4, gt=0)
    """The peak for `inverse_sqrt`, the factor for `noam`, the rate itself for `constant` and `plateau`."""
    schedule: Literal["inverse_sqrt", "noam", "constant", "plateau"] = "inverse_sqrt"
    """How the learning rate moves after warm-up."""
    decay: float = Field(default=0.5, gt=0, lt=1)
    """plateau: the rate is multiplied by it after every validation that is no better than the `best` one before."""
    max_decays: int = Field(default=5, ge=0)
    """plateau: the rate is lowered so often; where it would be once more, training ends."""
    warmup: int = Field(default=8000, ge=0)
    """Steps until the learning rate peaks."""
    betas: tuple[_Decay, _Decay] = (0.9, 0.98)
    """Adam's decay rates."""
    epsilon: float = Field(default=1e-9, gt=0)
    """Adam's epsilon."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay (AdamW)."""
    clip_norm: float = Field(default=0.0, ge=0)
    """Largest norm of the gradient; 0 does not clip."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Probability given to all pieces alike (Szegedy et al., 2016)."""
    precision: Literal["float32", "bf16", "fp16"] = "float32"
    """Autocast; the weights stay float32."""
    compile: bool = False
    """Compile the model with `torch.compile`."""
    device: str = "auto"
    """auto, cpu or cuda."""
    seed: int = Field(default=1, ge=0)
    """Of the weights, the dropout and the order of the data."""
    log_every: int = Field(default=50, ge=1)
    """Steps between lines of the log."""
    validate_every: int = Field(default=1000, ge=1)
    """Steps between validations."""
    save_every: int = Field(default=1000, ge=1)
    """Steps between checkpoints; a validation saves too."""
    keep: int = Field(default=1, ge=1)
    """So many of the last checkpoints are kept."""
    average: int = Field(default=1, ge=1)
    """The final model is the mean of so many of the last checkpoints."""
    validation_beam_size: int = Field(default=1, ge=0)
    """Beam of the translations whose BLEU a validation reports; 0 leaves BLEU out."""
    best: Literal["loss", "bleu"] = "loss"
    """What makes a checkpoint the best one, and what early stopping watches."""
    patience: int = Field(default=0, ge=0)
    """Stop after so many validations without a better one; 0 never stops early."""
    use: Literal["best", "last", "average"] = "best"
    """The weights that translate the test sets, and that `translate` takes."""

    @model_validator(mode="after")
    def _has_what_it_uses(self) -> TrainingRecipe:
        if self.use == "average" and self.average < 2:
            raise ValueError("`use: average` needs `average: 2` or more")
        if self.best == "bleu" and not self.validation_beam_size:
            raise ValueError("`best: bleu` needs a `validation_beam_size` of 1 or more")
        return self

    @model_validator(mode="after")
    def _decays_on_a_plateau(self) -> TrainingRecipe:
        for name in ("decay", "max_decays") if self.schedule != "plateau" else ():
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"`{name}` needs `schedule: plateau`, and this one is {self.schedule}")
        return self


class DecodingRecipe(Section):
    """How translations are searched for."""

    beam_size: int = Field(default=4, ge=1)
    """Hypotheses kept for each sentence; 1 is greedy."""
    length_penalty: float = Field(default=0.6, ge=0)
    """alpha of Wu et al. (2016): a score is divided by ((5 + length) / 6) ** alpha."""
    max_length_ratio: float = Field(default=1.5, gt=0)
    """A translation has at most so many pieces for each source piece, …"""
    max_length_extra: int = Field(default=20, ge=0)
    """… and so many more."""
    batch_size: int = Field(default=64, ge=1)
    """Sentences that are translated side by side."""


class EvaluationRecipe(Section):
    """How the test sets are scored."""

    metrics: tuple[Literal["bleu", "bleu1", "bleu2", "bleu3", "chrf", "chrf++", "ter", "ribes"], ...] = (
        "bleu",
        "chrf",
        "ter",
    )
    """Those of `synmt score` that need nothing but references."""
    tokenize: str = "13a"
    """sacreBLEU's tokeniser for BLEU; `none` for text that is tokenised already."""
    lowercase: bool = False
    """Compare lower-cased."""


class Recipe(Section):
    """One experiment."""

    name: str = Field(min_length=1, pattern=r"^[\w][\w.+-]*$")
    """The run's folder is `runs/<name>`; the file's name without `.yaml` where none is given."""
    source: str
    """The source language, as in the corpus's file names."""
    target: str
    """The target language."""
    corpus: CorpusRecipe
    filters: FilterRecipe = FilterRecipe()
    parser: ParserRecipe = ParserRecipe()
    target_parser: ParserRecipe = ParserRecipe()
    tasks: TasksRecipe = TasksRecipe()
    vocabulary: VocabularyRecipe = VocabularyRecipe()
    model: ModelRecipe = ModelRecipe.model_validate({})
    syntax: SyntaxRecipe = SyntaxRecipe()
    training: TrainingRecipe = TrainingRecipe()
    decoding: DecodingRecipe = DecodingRecipe()
    evaluation: EvaluationRecipe = EvaluationRecipe()

    @model_validator(mode="after")
    def _sections_agree(self) -> Recipe:
        if self.model.embeddings == "shared" and not self.vocabulary.joint:
            raise ValueError("`model.embeddings: shared` needs `vocabulary.joint: true`")
        if self.training.compile and self.model.architecture == "lstm":
            raise ValueError("`training.compile` cannot compile an lstm, whose steps are a loop: leave it out")
        return self
