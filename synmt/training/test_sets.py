"""Test sets and the validation text of a recipe, translated and scored."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import Corpus
from synmt.data.prepare import check_lengths
from synmt.data.stream import Reader
from synmt.data.vocabulary import Vocabulary
from synmt.decode.inputs import windows
from synmt.decode.translator import Translator, translate_batches
from synmt.errors import RETRANSLATE
from synmt.evaluation.cost import cost_line
from synmt.evaluation.metrics import cached_score, make_metric, options_of, score_system
from synmt.evaluation.outputs import tokens_folder
from synmt.evaluation.spaces import warn_of_unspaced
from synmt.files.checksums import recording
from synmt.files.json_files import read_json
from synmt.files.links import remove
from synmt.files.reading import read_lines
from synmt.files.schemas import ScoreOfTest
from synmt.files.writing import write_atomically, write_json
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.schema import Recipe
from synmt.reporting.progress import progress
from synmt.run_folder import Run
from synmt.syntax.conllu import read_parses
from synmt.tokenization.word_tokenizer import RAW
from synmt.training.finished import MADE_FROM, hashes_of
from synmt.training.preparation import Prepared
from synmt.training.records import ScoreRecord
from synmt.training.tree_sources import all_given_trees, given_trees, tree_requirements

_logger = logging.getLogger(__name__)


def check_tests(recipe: Recipe, corpus: Corpus, tests: Mapping[str, SplitFiles]) -> None:
    """Check the files of some test sets of a corpus, before any long work."""
    check_lengths(tests)
    requirements = tree_requirements(recipe)["source"]
    if requirements.to_run:
        all_given_trees(recipe, corpus, "source", requirements)


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
        done = _translate(translator, words.source, trees, name)
        cost = {
            "seconds": time.monotonic() - began,
            "processor_seconds": time.process_time() - processor_began,
        }
        text = text._replace(
            hypothesis=[translator.tokenizers["target"].join(line) for line in done]
        )
        folder = run.test_folder(name)
        # without the cost: the same translations have the same checksums
        with recording(folder, "*.txt", "*.tsv", "scores.json", MADE_FROM, "tokens/*.txt"):
            _write_test(folder, recipe, files, text, words._replace(hypothesis=done))
            write_json(folder / "cost.json", {"sentences": len(done), **cost}, indent=1)
            # last: if this is interrupted, files that have changed are still known as such
            write_json(folder / MADE_FROM, hashes[name], indent=1)


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


class _Texts(NamedTuple):
    """The texts of a test set, line by line."""

    source: list[str]
    reference: list[str]
    hypothesis: list[str]

    def write(self, folder: Path) -> None:
        """Write a file of each."""
        for name, lines in self._asdict().items():
            _write_lines(folder / f"{name}.txt", lines)


def _read_texts(files: SplitFiles, translator: Translator) -> tuple[_Texts, _Texts]:
    """Read source and reference as text and as the words that the model reads and writes."""
    text: dict[Side, list[str]] = {
        "source": list(read_lines(files.source)),
        "target": list(read_lines(files.target)),
    }
    words = dict(text)
    for side, lines in text.items():
        tokenizer = translator.tokenizers[side]
        if tokenizer.recipe.already_cut:
            text[side] = [tokenizer.join(line) for line in lines]
        else:
            words[side] = tokenizer.tokenize_lines(lines)
    return _Texts(text["source"], text["target"], []), _Texts(words["source"], words["target"], [])


def _write_test(
    folder: Path, recipe: Recipe, files: SplitFiles, text: _Texts, words: _Texts
) -> None:
    text.write(folder)
    remove(tokens_folder(folder))
    if any(recipe.text_of(side).changes for side in SIDES):
        words.write(tokens_folder(folder))
    if files.labels:
        _write_lines(folder / "labels.tsv", read_lines(files.labels))
    _, references, hypotheses = words if recipe.evaluation.on == "tokens" else text
    cache = folder / "segments"
    # it belongs to the translations that were here before
    remove(cache)
    options = options_of(recipe.evaluation)
    values = {}
    tokenize = recipe.evaluation.tokenize
    warn_of_unspaced(
        files.target.name,
        references,
        recipe.evaluation.metrics,
        tokenize,
        option="`evaluation.tokenize`",
    )
    for name in recipe.evaluation.metrics:
        score = cached_score(
            make_metric(name, options), hypotheses, references, sources=text.source, folder=cache
        )
        values[name] = {
            "score": score.value,
            "signature": score.signature,
            "details": score.details,
        }
    write_json(folder / "scores.json", values, indent=1)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with write_atomically(path) as out:
        out.writelines(f"{line}\n" for line in lines)


def read_results(run: Run) -> Iterator[ScoreRecord]:
    """Read the scores of all test sets; logs what the run cost."""
    for path in sorted(run.folder.glob("tests/*/scores.json")):
        for metric, values in read_json(path, dict[str, ScoreOfTest], do=RETRANSLATE).items():
            yield ScoreRecord(path.parent.name, metric, values["score"], values["signature"])
    _logger.info("cost: %s", cost_line(run))


def validation_bleu(
    recipe: Recipe, prepared: Prepared, valid: Reader, target: Vocabulary
) -> Callable[[Seq2Seq], float]:
    """Make the function that translates the validation text and computes its BLEU."""
    on_tokens, tokenizer = recipe.evaluation.on == "tokens", prepared.tokenizers.get("target", RAW)
    corpus = prepared.corpus if on_tokens else prepared.raw or prepared.corpus
    text = list(read_lines(corpus.valid.target))
    if tokenizer.recipe.already_cut and not on_tokens:
        text = [tokenizer.join(line) for line in text]
    tokenize = recipe.evaluation.tokenize
    warn_of_unspaced(
        corpus.valid.target.name, text, ("bleu",), tokenize, option="`evaluation.tokenize`"
    )
    references = [text[example.line] for example in valid.split.rows(range(len(valid.split)))]
    settings = recipe.decoding.model_copy(
        update={"beam_size": recipe.training.validation_beam_size}
    )
    lowercase = recipe.evaluation.lowercase

    def score(model: Seq2Seq) -> float:
        hypotheses = translate_batches(model, valid.once(), settings, target)
        hypotheses = hypotheses if on_tokens else [tokenizer.join(line) for line in hypotheses]
        return score_system(
            hypotheses, references, ("bleu",), tokenize=tokenize, lowercase=lowercase
        )["bleu"].value

    return score
