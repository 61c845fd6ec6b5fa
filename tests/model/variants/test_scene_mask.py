"""Scenes: masks of heads against a loop over the equation, and their way from CoNLL-U to a
translation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from attending import assert_attends, drawn
from small import MONKEY, random_tree
from tiny import fail, succeed, synmt, write_lines, write_recipe

from synmt.data.corpus import PreparedCorpus, Tree
from synmt.model.variants.scene_mask import SceneMask
from synmt.run_folder import Run
from synmt.syntax.conllu import format_conllu, read_conllu, read_parses
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import SCENES, Parse

VALUES = ["1"], ["_", "1", "1,2", "2"], ["a,b", "_", "b", "c", "_", "a,c", "d"]
"""Scenes of the words of three sentences."""


@pytest.mark.parametrize("seed", range(3))
def test_a_head_sees_the_words_of_its_scenes(seed):
    random, trees = np.random.default_rng(seed), []
    for values in VALUES:
        parse = replace(random_tree(len(values), random), features={SCENES: values})
        pieces = random.integers(1, 4, len(values))
        trees.append(Tree(parse, np.append(np.repeat(np.arange(len(values)), pieces), -1)))

    def scenes(pair, word):
        return set(pair.parse.features[SCENES][word].replace("_", "").split(",")) - {""}

    def sees(pair):
        """A special sees itself only; a word in no scene sees all."""
        query, key = pair.words
        if query < 0:
            return pair.i == pair.j
        own = scenes(pair, query)
        return not own or (key >= 0 and own & scenes(pair, key))

    def score(pair):
        return pair.plain if sees(pair) else torch.tensor(-torch.inf)

    assert_attends(drawn(SceneMask), trees, score)


def test_scenes_are_written_into_misc_and_read_again(tmp_path):
    line, values = "The monkey eats a banana", ["1", "1,2", "2", "_", "2"]
    block = format_conllu(replace(MONKEY, features={SCENES: values}), line, 1)
    assert block.split("\n")[3].endswith("\tScenes=1,2|TokenRange=4:10")
    assert "Scenes" not in block.split("\n")[5]
    (tmp_path / "trees.conllu").write_text(block)
    [(_, parse)] = read_conllu(tmp_path / "trees.conllu")
    assert parse.features == {SCENES: values}


ZUM_HAUS = """\
1-2 zum _ _ _ _ 0 dep _ Scenes=4
1 zu _ _ _ _ 0 dep _ Scenes=1,2
2 dem _ _ _ _ 1 dep _ Scenes=2,3
3 Haus _ _ _ _ 1 dep _ _

"""


def test_a_token_of_several_words_is_in_the_scenes_of_all_and_in_its_own(tmp_path):
    (tmp_path / "trees.conllu").write_text(ZUM_HAUS.replace(" ", "\t"))
    [parse] = read_parses(tmp_path / "trees.conllu", ["zum Haus"])
    assert parse.features == {SCENES: ["4,1,2,3", "_"]}


def test_a_word_takes_the_scenes_of_those_that_are_merged_into_it():
    # "cannot go": can and not share a piece, which can owns
    spans, relations = np.array([[0, 3], [3, 6], [7, 9]]), ["aux", "advmod", "root"]
    features = {SCENES: ["1", "2", "_"]}
    parse = Parse(["can", "not", "go"], spans, np.array([2, 2, 2]), relations, features=features)
    merged, _ = merge_unowned(parse, np.array([[0, 6], [6, 9]]), np.array([0, 2]))
    assert merged.features == {SCENES: ["1,2", "_"]}


VARIANT = {"name": "scene_mask", "layers": [1], "heads": 2}


def with_scenes(path):
    """Put the words of each sentence into scenes, in turn; the third word of each is in both."""
    lines = []
    for row in path.read_text(encoding="utf-8").split("\n"):
        columns = row.split("\t")
        if len(columns) == 10:
            number = int(columns[0])
            columns[9] = f"Scenes={'1,2' if number == 3 else 1 + number % 2}|{columns[9]}"
        lines.append("\t".join(columns))
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.journey
def test_a_run_reads_scenes_in_training_and_in_translation(place):
    for split in ("train", "valid", "test"):
        with_scenes(place / f"corpus/{split}.en.conllu")
    write_recipe(place / "s.yaml", place / "corpus", syntax={"variants": [VARIANT]})
    succeed("train", "s.yaml", cwd=place)
    (folder,) = (place / "data/prepared").iterdir()
    (name,) = PreparedCorpus.open(folder).annotations()
    lines = (place / "corpus/train.en").read_text(encoding="utf-8").splitlines()
    trees = list(read_parses(place / "corpus/train.en.conllu", lines))
    for row in PreparedCorpus.open(folder).split("train", {"source": name}).rows(range(32)):
        # a later word takes in the comma or full stop after it
        stored = row.trees["source"].parse.features[SCENES]
        assert stored[:5] == trees[row.line].features[SCENES][:5]
    text, scened = (place / f"corpus/test.en{suffix}" for suffix in ("", ".conllu"))
    again = synmt("translate", "--parses", scened, text=text.read_bytes(), cwd=place)
    tested = Run(place / "runs/s").folder / "tests/test/hypothesis.txt"
    assert again.stdout == tested.read_bytes()
    for options in ((), ("--parser", "compact")):
        message = synmt("translate", *options, text=text.read_bytes(), cwd=place).stderr.decode()
        assert "Provide a tree for each line with `--parses FILE.conllu`" in message
    bare = scened.read_text(encoding="utf-8").replace("Scenes", "Others")
    (place / "bare.conllu").write_text(bare, encoding="utf-8")
    done = synmt("translate", "--parses", "bare.conllu", text=text.read_bytes(), cwd=place)
    assert done.stderr.count(b"the given trees lack what the model reads: scenes") == 1


BRACKETS = {"name": "distance_transformer", "layers": [1], "heads": 1}


@pytest.mark.journey
@pytest.mark.parametrize(
    ("parser", "others", "words"),
    [
        (
            {"control": "gold"},
            [],
            "train.en.conllu: a variant reads scenes, which these trees do not have, and no "
            "parser makes them. Give CoNLL-U for every text, with `Scenes=1,2` in MISC",
        ),
        ({}, [], "a variant reads scenes"),
        ({"control": "random"}, [], "change trees of the source, but nothing in this recipe reads"),
        (
            {"constituents": "given"},
            [BRACKETS],
            "train.en.brackets: a variant reads scenes, which these trees do not have",
        ),
    ],
    ids=str,
)
def test_trees_without_scenes_are_refused(place, parser, others, words):
    for split in ("train", "valid", "test"):
        lines = (place / f"corpus/{split}.en").read_text(encoding="utf-8").splitlines()
        write_lines(place / f"corpus/{split}.en.brackets", [f"(S {line})" for line in lines])
    syntax, parser = {"variants": [VARIANT, *others]}, {**parser, "workers": 1, "device": "cpu"}
    write_recipe(place / "s.yaml", place / "corpus", syntax=syntax, parser=parser)
    assert words in " ".join(fail(2, "prepare", "s.yaml", cwd=place).split())
