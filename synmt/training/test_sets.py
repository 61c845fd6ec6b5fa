"""Test sets and the validation text of a recipe, translated and scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from synmt.arrays import SIDES
from synmt.data.stream import Reader
from synmt.data.vocabulary import Vocabulary
from synmt.decode.inputs import windows
from synmt.decode.translator import Translator, translate_batches
from synmt.errors import RETRANSLATE
from synmt.evaluation.metrics import cached_score, computed_here, make_metric, options_of, score
from synmt.evaluation.outputs import tokens_folder
from synmt.evaluation.spaces import warn_of_unspaced
from synmt.files.checksums import recording
from synmt.files.json_files import read_json
from synmt.files.reading import read_lines
from synmt.files.schemas import ScoreOfTest
from synmt.files.writing import remove, write_json, write_lines
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.schema import Recipe, TrainingRecipe
from synmt.reporting.progress import progress
from synmt.run_folder import Run
from synmt.syntax.conllu import read_parses
from synmt.training.finished import MADE_FROM, hashes_of
from synmt.training.preparation import Prepared
from synmt.training.records import ScoreRecord, ValidationScores
from synmt.training.tree_sources import given_trees

_SAMPLES = 3
"""How many translations of the validation text the log keeps."""


def translate_tests(
    run: Run, recipe: Recipe, tests: Mapping[str, SplitFiles], *, parser: str | None = None
) -> None:
    """Translate and score test sets into the run folder.

    parser: the folder of the parser, if it is not where the run recorded it.
    """
    if not tests:
        return
    translator = Translator.load(run, device=recipe.training.device, parser=parser)
    # before they are read: a later change is noticed
    hashes = {name: hashes_of(files) for name, files in tests.items()}
    for name, files in tests.items():
        trees = given_trees(recipe, files, "source") if translator.reads_trees else None
        text, words = _read_texts(files, translator)
        began, processor_began = time.monotonic(), time.process_time()
        words["hypothesis"] = _translate(translator, words["source"], trees, name)
        cost = {
            "sentences": len(words["hypothesis"]),
            "seconds": time.monotonic() - began,
            "processor_seconds": time.process_time() - processor_began,
        }
        folder = run.test_folder(name)
        text["hypothesis"] = list(map(translator.tokenizers["target"].join, words["hypothesis"]))
        # without the cost: the same translations have the same checksums
        with recording(folder, "*.txt", "*.tsv", "scores.json", MADE_FROM, "tokens/*.txt"):
            _write_texts(folder, text)
            remove(tokens_folder(folder))
            if any(recipe.text_of(side).changes for side in SIDES):
                _write_texts(tokens_folder(folder), words)
            if files.labels:
                write_lines(folder / "labels.tsv", read_lines(files.labels))
            _write_scores(folder, recipe, text, words)
            write_json(folder / "cost.json", cost, indent=1)
            # last: if this is interrupted, files that have changed are still known as such
            write_json(folder / MADE_FROM, hashes[name], indent=1)


_Texts = dict[str, list[str]]
"""The source, reference and hypothesis of a test set, line by line."""


def _read_texts(files: SplitFiles, translator: Translator) -> tuple[_Texts, _Texts]:
    """Read source and reference as text and as the words that the model reads and writes."""
    text = {
        "source": list(read_lines(files.source)),
        "reference": list(read_lines(files.target)),
    }
    words = dict(text)
    for (name, lines), side in zip(words.items(), SIDES, strict=True):
        tokenizer = translator.tokenizers[side]
        if tokenizer.recipe.already_cut:
            text[name] = list(map(tokenizer.join, lines))
        else:
            words[name] = tokenizer.tokenize_lines(lines)
    return text, words


def _translate(
    translator: Translator, source: list[str], trees: Path | None, name: str
) -> list[str]:
    parses = read_parses(trees, source, brackets=True) if trees else None
    done: list[str] = []
    with progress(f"translate {name}", len(source), "lines") as advance:
        for window in translator.translate_words(windows(source, translator.window), parses):
            done += [translation.text for translation in window]
            advance(len(window))
    return done


def _write_texts(folder: Path, texts: _Texts) -> None:
    for name, lines in texts.items():
        write_lines(folder / f"{name}.txt", lines)


def _write_scores(folder: Path, recipe: Recipe, text: _Texts, words: _Texts) -> None:
    settings, cache, values = recipe.evaluation, folder / "segments", {}
    scored = words if settings.on == "tokens" else text
    names = computed_here(settings.metrics)
    warn_of_unspaced(folder.name, scored["reference"], names, settings.tokenize)
    # it belongs to the translations that were here before
    remove(cache)
    for name in names:
        score = cached_score(
            make_metric(name, options_of(settings)),
            scored["hypothesis"],
            scored["reference"],
            sources=text["source"],
            folder=cache,
        )
        values[name] = {
            "score": score.value,
            "signature": score.signature,
            "details": score.details,
        }
    write_json(folder / "scores.json", values, indent=1)


def read_results(run: Run) -> Iterator[ScoreRecord]:
    """Read the scores of all test sets."""
    for path in sorted(run.folder.glob("tests/*/scores.json")):
        for metric, values in read_json(path, dict[str, ScoreOfTest], do=RETRANSLATE).items():
            yield ScoreRecord(path.parent.name, metric, values["score"], values["signature"])


def validation_metrics(settings: TrainingRecipe) -> list[str]:
    """Name the metrics of a validation: BLEU and that of `best`, or none without translations."""
    if not settings.validation_beam_size:
        return []
    return ["bleu"] if settings.best in ("loss", "bleu") else ["bleu", settings.best]


def validation_scores(
    recipe: Recipe, prepared: Prepared, valid: Reader, target: Vocabulary
) -> Callable[[Seq2Seq], ValidationScores]:
    """Make the function that translates the validation text and scores it."""
    settings, tokenizer = recipe.evaluation, prepared.tokenizers["target"]
    on_tokens = settings.on == "tokens"
    corpus = prepared.corpus if on_tokens else prepared.raw
    text = list(read_lines(corpus.valid.target))
    if tokenizer.recipe.already_cut and not on_tokens:
        text = list(map(tokenizer.join, text))
    references = [text[example.line] for example in valid.split.rows(range(len(valid.split)))]
    decoding = recipe.decoding.model_copy(
        update={"beam_size": recipe.training.validation_beam_size}
    )
    metrics = {
        name: make_metric(name, options_of(settings))
        for name in validation_metrics(recipe.training)
    }

    def translate_and_score(model: Seq2Seq) -> ValidationScores:
        hypotheses = translate_batches(model, valid.once(), decoding, target)
        hypotheses = hypotheses if on_tokens else list(map(tokenizer.join, hypotheses))
        values = {
            name: score(metric, hypotheses, references).value for name, metric in metrics.items()
        }
        [*_, last] = metrics
        sign = -1 if metrics[last].higher_is_better else 1
        samples = list(zip(references, hypotheses, strict=True))[:_SAMPLES]
        return ValidationScores(values, sign * values[last], samples)

    return translate_and_score
