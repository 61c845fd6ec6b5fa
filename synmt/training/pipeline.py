"""From a recipe to a trained run: what is missing is found out, made ready, and brought together."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from synmt import __version__
from synmt.arrays import SIDES, Side
from synmt.data.batch import Reading, reading_of
from synmt.data.corpora import Corpus, resolve_corpus, test_names
from synmt.data.corpus import PreparedCorpus
from synmt.data.prepare import check_lengths
from synmt.data.stream import Reader
from synmt.decode.inputs import windows
from synmt.decode.translator import Translator, translate_batches
from synmt.errors import UsageError
from synmt.evaluation.cache import cached_score
from synmt.evaluation.metrics import MetricOptions, make_metric, score_system
from synmt.files import read_lines, write_atomically
from synmt.model.build import build_for
from synmt.model.device import choose_device
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe.data import SplitFiles
from synmt.recipe.load import recipe_values
from synmt.recipe.schema import Recipe
from synmt.run import Run, average_weights, regular_checkpoints, remove_leftovers
from synmt.syntax.conllu import read_parses
from synmt.training.distributed import Processes
from synmt.training.trainer import Trainer
from synmt.training.tree_requirements import all_given_trees, given_trees, parser_recipe, tree_requirements

MAY_CHANGE = {
    "training": {
        *("max_steps", "log_every", "validate_every", "save_every", "keep", "average"),
        *("patience", "max_decays", "use", "device"),
    },
    "corpus": {"test"},
    "parser": {"workers", "device"},
    "target_parser": {"workers", "device"},
    "decoding": None,
    "evaluation": None,
}
"""Keys in which a recipe may differ from that of the run which it goes on with; None stands for all."""


def check_values(recipe: Recipe) -> None:
    """Try whatever of a recipe can be tried before anything runs: variants, device, metrics."""
    tree_requirements(recipe)
    device = choose_device(recipe.training.device)
    if (recipe.model.architecture, recipe.training.precision, device.type) == ("lstm", "fp16", "cpu"):
        raise UsageError(
            "an lstm cannot be trained in fp16 on a CPU", where="training.precision", allowed="float32 and bf16"
        )
    options = MetricOptions(recipe.evaluation.tokenize, recipe.evaluation.lowercase)
    for name in recipe.evaluation.metrics:
        make_metric(name, options)


def check_run(run: Run, recipe: Recipe, *, overwrite: bool) -> None:
    """Refuse a folder that holds something else, or the run of another recipe; nothing is written."""
    if not run.exists():
        # a name with a dot is that of a file which a killed process had not finished
        ours = ("lock", "recipe.yaml")
        others = [path for path in run.folder.glob("*") if path.name not in ours and not path.name.startswith(".")]
        if others:
            raise UsageError("is no run folder, and not empty", where=str(run.folder), do="Choose another name=…")
        return
    run.info()
    differing = [] if overwrite else list(_differences(recipe_values(run.recipe()), recipe_values(recipe)))
    if differing:
        raise UsageError(
            "the run was begun by another recipe: " + "; ".join(differing),
            where=str(run.folder),
            do=f"Give this one another name (name={recipe.name}-2), or begin anew with --overwrite",
        )


def has_finished(run: Run, recipe: Recipe) -> bool:
    """Tell whether a run has learnt all that its recipe asks for; its test sets may have changed since."""
    if not run.exists() or run.info().get("status") != "finished":
        return False
    return _without_tests(run.recipe()) == _without_tests(recipe)


def _without_tests(recipe: Recipe) -> Recipe:
    return recipe.model_copy(update={"corpus": recipe.corpus.model_copy(update={"test": {}})})


def missing_tests(run: Run, recipe: Recipe) -> list[str]:
    """Name the test sets of which a finished run has no translations, or those of other files."""
    before, now = run.recipe().corpus.test, recipe.corpus.test
    names = test_names(recipe.corpus, recipe.source, recipe.target)
    return [name for name in names if not _is_scored(run.test_folder(name)) or before.get(name) != now.get(name)]


def _is_scored(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("source.txt", "reference.txt", "hypothesis.txt", "scores.json"))


def find_tests(recipe: Recipe, names: Iterable[str]) -> dict[str, SplitFiles]:
    """Find the files of some test sets, and check them before anything long begins."""
    corpus = resolve_corpus(recipe.corpus, recipe.source, recipe.target)
    tests = {name: corpus.test[name] for name in names}
    check_lengths(tests)
    needs = tree_requirements(recipe)["source"]
    if needs.to_run:
        all_given_trees(recipe, corpus, "source", needs)
    return tests


def begin_run(run: Run, recipe: Recipe, prepared: Prepared, *, overwrite: bool) -> None:
    """Make a run folder that `check_run` allows ready for training; the caller holds its lock."""
    if overwrite:
        _empty(run)
    remove_leftovers(run)
    # both names are hashes of what is inside
    reads = {"prepared": prepared.folder.name, "trees": dict(prepared.made_by)}
    before = run.info() if run.exists() else {}
    if any(before.get(key, value) != value for key, value in reads.items()):
        raise UsageError(
            "the text, or the parser of its trees, has changed since the run began",
            where=str(run.folder),
            do=f"Give this one another name (name={recipe.name}-2), or begin anew with --overwrite",
        )
    if not run.exists() or run.recipe() != recipe:
        run.write_recipe(recipe)
        run.write_info(name=recipe.name, status="training", synmt=__version__, torch=torch.__version__)
    run.write_info(parser=prepared.parser, **reads)


def _empty(run: Run) -> None:
    # run.json goes last: if this is interrupted, the folder is still known as a run
    for path in sorted(run.folder.iterdir(), key=lambda path: path.name == "run.json"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for section in sorted(old.keys() | new.keys()):
        before, after = old.get(section), new.get(section)
        free = MAY_CHANGE.get(section, set())
        if before == after or free is None:
            continue
        if not isinstance(before, dict) or not isinstance(after, dict):
            yield f"{section} was {before!r}, is {after!r}"
            continue
        for key in sorted((before.keys() | after.keys()) - free):
            if before.get(key) != after.get(key):
                yield f"{section}.{key} was {before.get(key)!r}, is {after.get(key)!r}"


@dataclass(frozen=True)
class Prepared:
    """What training reads.

    folder: the prepared corpus.
    trees: the name of the annotation with the trees of each side that has some.
    made_by: the same name, whether or not the trees come with probabilities.
    parser: the identity of the parser that made the source's, with which new text is parsed.
    """

    corpus: Corpus
    folder: Path
    trees: Mapping[Side, str] = field(default_factory=dict)
    made_by: Mapping[Side, str] = field(default_factory=dict)
    parser: Mapping[str, Any] | None = None


def make_trainer(run: Run, recipe: Recipe, prepared: Prepared, processes: Processes) -> Trainer:
    """Build the model and put it before its data."""
    data = PreparedCorpus.open(prepared.folder)
    source, target = data.vocabularies
    for name, vocabulary in (("source", source), ("target", target)):
        vocabulary.save(run.folder, name)
    torch.manual_seed(recipe.training.seed)
    model = build_for(recipe, source, target)
    reading: dict[Side, Reading] = {
        side: reading_of(model.reads(side) + model.learns(side), parser_recipe(recipe, side)) for side in SIDES
    }
    valid = Reader(data.split("valid", prepared.trees), recipe.training, reading)
    train = Reader(data.split("train", prepared.trees), recipe.training, reading, processes.rank, processes.count)
    return Trainer(
        run,
        recipe,
        model,
        train=train,
        valid=valid,
        device=choose_device(recipe.training.device),
        score=_validation_bleu(recipe, prepared, valid, target) if recipe.training.validation_beam_size else None,
        processes=processes,
    )


def _validation_bleu(recipe: Recipe, prepared: Prepared, valid: Reader, target: Any) -> Callable[[Seq2Seq], float]:
    lines = [example.line for example in valid.split.rows(range(len(valid.split)))]
    text = list(read_lines(prepared.corpus.valid.target))
    references = [text[line] for line in lines]
    settings = recipe.decoding.model_copy(update={"beam_size": recipe.training.validation_beam_size})

    def score(model: Seq2Seq) -> float:
        hypotheses = translate_batches(model, valid.once(), settings, target)
        options = {"tokenize": recipe.evaluation.tokenize, "lowercase": recipe.evaluation.lowercase}
        return score_system(hypotheses, references, ("bleu",), **options)["bleu"].value

    return score


def keep_final_weights(run: Run, recipe: Recipe) -> None:
    """Write the weights that translate: the best, the last, or the mean of the last ones."""
    settings = recipe.training
    if settings.average > 1:
        last = regular_checkpoints(run, settings)[-settings.average :]
        # of a finished run somebody may have removed them
        if last:
            average_weights([folder / "model.safetensors" for folder in last], run.folder / "average.safetensors")
    with write_atomically(run.weights, binary=True) as out, open(run.weights_of(settings.use), "rb") as weights:
        shutil.copyfileobj(weights, out)


def translate_test(run: Run, recipe: Recipe, name: str, files: SplitFiles) -> Iterator[int]:
    """Translate and score one test set into the run folder; yields how many lines each window had."""
    folder = run.test_folder(name)
    sources, references = list(read_lines(files.source)), list(read_lines(files.target))
    trees = given_trees(recipe, files, "source") if tree_requirements(recipe)["source"].to_run else None
    parses = read_parses(trees, sources) if trees else None
    translator = Translator.load(run, device=recipe.training.device)
    hypotheses = []
    for window in translator.translate_windows(windows(sources, translator.window), parses):
        hypotheses += [translation.text for translation in window]
        yield len(window)
    _write_lines(folder / "source.txt", sources)
    _write_lines(folder / "reference.txt", references)
    _write_lines(folder / "hypothesis.txt", hypotheses)
    if files.labels:
        _write_lines(folder / "labels.tsv", read_lines(files.labels))
    _score_test(folder, recipe, hypotheses, references, sources)


def _score_test(folder: Path, recipe: Recipe, hypotheses: list[str], references: list[str], sources: list[str]) -> None:
    kept = folder / "segments"
    # what is there was counted in translations that are no more
    shutil.rmtree(kept, ignore_errors=True)
    options = MetricOptions(recipe.evaluation.tokenize, recipe.evaluation.lowercase)
    values = {}
    for name in recipe.evaluation.metrics:
        score = cached_score(make_metric(name, options), hypotheses, references, sources=sources, folder=kept)
        values[name] = {"score": score.value, "signature": score.signature, "details": score.details}
    with write_atomically(folder / "scores.json") as out:
        json.dump(values, out, indent=1)


def finish_run(run: Run, step: int) -> None:
    """Mark the run as finished, so that the next commands find it."""
    run.write_info(status="finished", steps=step, finished_at=datetime.datetime.now(datetime.timezone.utc).isoformat())


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with write_atomically(path) as out:
        out.writelines(f"{line}\n" for line in lines)
