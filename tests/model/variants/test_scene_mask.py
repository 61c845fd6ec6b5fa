"""Scenes: masks of heads against a loop over the equation, and their way from CoNLL-U to a
translation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from attending import assert_same_with_gradients, random_terms, read, slow_attend, with_eos
from small import MONKEY, MONKEY_WORD_OF, random_tree, small_model
from tiny import synmt, write_lines, write_recipe

from synmt.data.corpus import PreparedCorpus, Tree
from synmt.model.attention import attend
from synmt.model.variant import Place
from synmt.model.variants.scene_mask import SceneMask
from synmt.run_folder import Run
from synmt.syntax.conllu import format_conllu, read_conllu, read_parses
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import SCENES, Parse
from synmt.syntax.scenes import SAME_SCENE, same_scene

pytestmark = pytest.mark.journey

VALUES = [["1"], ["_", "1", "1,2", "2"], ["a,b", "_", "b", "c", "_", "a,c", "d"]]
"""Scenes of the words of three sentences."""


def sentences(seed):
    random = np.random.default_rng(seed)
    for values in VALUES:
        parse = replace(random_tree(len(values), random), features={SCENES: values})
        yield Tree(parse, np.repeat(np.arange(len(values)), random.integers(1, 4, len(values))))


@pytest.mark.parametrize("seed", range(3))
def test_a_head_sees_the_words_of_its_scenes_gradients_too(seed):
    variant, trees = (
        SceneMask(Place("source", layer=1, heads=2, model_dim=8, head_dim=4)),
        list(sentences(seed)),
    )
    syntax, mask = read(variant, trees)
    terms, known = random_terms(3, 2, mask.size(-1), 4, mask, seed=seed), with_eos(trees)

    def scenes(b, piece):
        word = known[b][1][piece]
        return {"EOS"} if word < 0 else set(VALUES[b][word].replace("_", "").split(",")) - {""}

    def score(b, h, i, j):
        seen = not scenes(b, i) or scenes(b, i) & scenes(b, j)
        return terms.q[b, h, i] @ terms.k[b, h, j] / 2 + (0 if seen else -torch.inf)

    expected = slow_attend(terms, score, lengths=[len(word_of) for _, word_of in known])
    output = attend(variant.edit(terms, syntax)) * mask.mT
    assert_same_with_gradients(output, expected, (terms.q, terms.k, terms.v))


def scenes_of(values, word_of):
    return same_scene(replace(MONKEY, features={SCENES: values}), np.array(word_of)).tolist()


def test_the_monkey_is_one_scene_and_nothing_is_masked():
    assert scenes_of(["1"] * 5, range(5)) == [[1] * 5] * 5
    # EOS sees itself only, and is not seen
    assert scenes_of(["1"] * 5, [0, 1, 2, 3, 4, -1]) == [[1] * 5 + [0]] * 5 + [[0] * 5 + [1]]


def test_a_word_in_two_scenes_sees_both_and_a_word_in_none_sees_everything():
    assert scenes_of(["1", "1,2", "2", "_", "2"], range(5)) == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 1],
        [0, 1, 1, 0, 1],
        [1, 1, 1, 1, 1],
        [0, 1, 1, 0, 1],
    ]


def test_pieces_are_in_the_scenes_of_their_words():
    by_word = np.array(scenes_of(["1", "1,2", "2", "_", "2"], range(5)))
    by_piece = scenes_of(["1", "1,2", "2", "_", "2"], MONKEY_WORD_OF)
    assert by_piece == by_word[np.ix_(MONKEY_WORD_OF, MONKEY_WORD_OF)].tolist()


def test_words_without_scenes_see_everything():
    assert same_scene(MONKEY, np.array([0, 1, -1])).tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 1]]
    nothing = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
    assert same_scene(nothing, np.array([-1])).tolist() == [[1]]


def test_it_stands_in_one_head_of_layer_4():
    model = small_model({"name": "scene_mask"}, encoder_layers=4)
    assert [(v.place.layer, v.place.heads) for v in model.variants["source"]] == [(4, 1)]
    assert model.reads("source") == (SAME_SCENE,)
    assert not list(model.variants["source"][0].parameters())


# CoNLL-U


def test_scenes_are_written_into_misc_and_read_again(tmp_path):
    line, values = "The monkey eats a banana", ["1", "1,2", "2", "_", "2"]
    block = format_conllu(replace(MONKEY, features={SCENES: values}), line, 1)
    assert block.split("\n")[3].endswith("\tScenes=1,2|TokenRange=4:10")
    assert "Scenes" not in block.split("\n")[5]
    (tmp_path / "trees.conllu").write_text(block)
    [(_, parse)] = read_conllu(tmp_path / "trees.conllu")
    assert parse.features == {SCENES: values}


def test_a_token_of_several_words_is_in_the_scenes_of_all_and_in_its_own(tmp_path):
    rows = [
        ("1-2", "zum", 0, "Scenes=4"),
        (1, "zu", 0, "Scenes=1,2"),
        (2, "dem", 1, "Scenes=2,3"),
        (3, "Haus", 1, "_"),
    ]
    text = "".join(
        f"{n}\t{form}\t_\t_\t_\t_\t{head}\tdep\t_\t{misc}\n" for n, form, head, misc in rows
    )
    (tmp_path / "trees.conllu").write_text(text + "\n")
    [parse] = read_parses(tmp_path / "trees.conllu", ["zum Haus"])
    assert parse.features == {SCENES: ["4,1,2,3", "_"]}


def test_a_word_takes_the_scenes_of_those_that_are_merged_into_it():
    # "cannot go": can and not share a piece, which can owns
    spans, values = np.array([[0, 3], [3, 6], [7, 9]]), ["1", "2", "_"]
    parse = Parse(
        ["can", "not", "go"],
        spans,
        np.array([2, 2, 2]),
        ["aux", "advmod", "root"],
        features={SCENES: values},
    )
    merged, _ = merge_unowned(parse, np.array([[0, 6], [6, 9]]), np.array([0, 2]))
    assert merged.features == {SCENES: ["1,2", "_"]}


# from files to a translation


RECIPE = {"syntax": {"variants": [{"name": "scene_mask", "layers": [1], "heads": 2}]}}


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


@pytest.fixture
def scened(place):
    """Write scenes into the trees of the tiny corpus."""
    for split in ("train", "valid", "test"):
        with_scenes(place / f"corpus/{split}.en.conllu")
    return place


def test_a_run_reads_scenes_in_training_and_in_translation(scened):
    write_recipe(scened / "s.yaml", scened / "corpus", **RECIPE)
    done = synmt("train", "s.yaml", cwd=scened)
    assert done.returncode == 0, done.stderr.decode()
    (folder,) = (scened / "data/prepared").iterdir()
    (name,) = PreparedCorpus.open(folder).annotations()
    lines = (scened / "corpus/train.en").read_text(encoding="utf-8").splitlines()
    trees = list(read_parses(scened / "corpus/train.en.conllu", lines))
    for row in PreparedCorpus.open(folder).split("train", {"source": name}).rows(range(32)):
        # a later word takes in the comma or full stop after it
        stored, given = row.trees["source"].parse.features[SCENES], trees[row.line].features[SCENES]
        assert stored[:5] == given[:5]
    text, given = (scened / f"corpus/test.en{suffix}" for suffix in ("", ".conllu"))
    again = synmt("translate", "--parses", given, text=text.read_bytes(), cwd=scened)
    assert (
        again.stdout == (Run(scened / "runs/s").folder / "tests/test/hypothesis.txt").read_bytes()
    )
    for options in ((), ("--parser", "compact")):
        without = synmt("translate", *options, text=text.read_bytes(), cwd=scened)
        assert without.returncode
        message = " ".join(without.stderr.decode().split())
        assert (
            "a variant reads scenes, and no parser makes them. Provide a tree with scenes for "
            "each line" in message
        )
    (scened / "bare.conllu").write_text(
        given.read_text(encoding="utf-8").replace("Scenes", "Others"), encoding="utf-8"
    )
    bare = synmt(
        "translate", "--parses", scened / "bare.conllu", text=text.read_bytes(), cwd=scened
    )
    assert bare.stderr.count(b"the model reads scenes, which the given trees do not have") == 1


def refusal(place, **sections):
    """Prepare with a recipe that is refused: the message, in one line."""
    write_recipe(place / "s.yaml", place / "corpus", **{**RECIPE, **sections})
    done = synmt("prepare", "s.yaml", cwd=place)
    assert done.returncode == 2
    return " ".join(done.stderr.decode().split())


def test_trees_without_scenes_are_named(place):
    message = refusal(place)
    assert "train.en.conllu: a variant reads scenes, and these trees have none" in message
    assert "with `Scenes=1,2` in MISC" in message


def test_a_parser_is_refused_since_none_makes_scenes(place):
    message = refusal(place, parser={"workers": 1, "device": "cpu"})
    assert "a variant reads scenes, and no parser makes them" in message


@pytest.mark.parametrize("parser", [{"control": "random"}, {"control": "gold", "rewire": 0.5}])
def test_controls_are_refused_since_they_change_no_scene(place, parser):
    message = refusal(place, parser={**parser, "workers": 1, "device": "cpu"})
    assert "change trees of the source, but nothing in this recipe reads them" in message


def test_brackets_are_refused_since_they_have_no_scenes(place):
    for split in ("train", "valid", "test"):
        lines = (place / f"corpus/{split}.en").read_text(encoding="utf-8").splitlines()
        write_lines(place / f"corpus/{split}.en.brackets", [f"(S {line})" for line in lines])
    variants = [
        *RECIPE["syntax"]["variants"],
        {"name": "distance_transformer", "layers": [1], "heads": 1},
    ]
    message = refusal(
        place, syntax={"variants": variants}, parser={"constituents": "given", "workers": 1}
    )
    assert "train.en.brackets: a variant reads scenes, and these trees have none" in message
