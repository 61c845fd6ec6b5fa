"""Systems through the command: distributions by the real parser, shared trees, controls, mixtures,
refusals."""

import re

import pytest
from tiny import MODEL, synmt, write_recipe

from synmt.data.corpus import PreparedCorpus

pytestmark = pytest.mark.journey

PARSED = {"workers": 1, "device": "cpu"}
LDD = {"name": "dependency_distribution", "groups": [["nsubj"], ["obj", "iobj"], ["det"], ["odd"]]}
GOLD = {"control": "gold", **PARSED}
SHORT = ("training.average=1", "training.use=last")


def recipe(place, name, *variants, trees=None, **sections):
    """Write a recipe for the folder of the corpus, or for its files one by one with their trees."""
    given = {} if trees is None else {"corpus": trees}
    write_recipe(
        place / f"{name}.yaml",
        place / "corpus",
        syntax={"variants": list(variants)},
        **sections,
        **given,
    )
    return f"{name}.yaml"


def run(place, command, *arguments, code=0, text=""):
    done = synmt(command, *arguments, text=text, cwd=place)
    said = " ".join(done.stderr.decode().split())
    assert done.returncode == code, said
    return done.stdout, said


def check_translation(place, name, *arguments):
    """Translate the test set again, which gives the translations of the run."""
    text, hypothesis = place / "corpus/test.en", place / f"runs/{name}/tests/test/hypothesis.txt"
    assert run(place, "translate", *arguments, text=text.read_bytes())[0] == hypothesis.read_bytes()


def annotations(place):
    (folder,) = (place / "data/prepared").iterdir()
    return PreparedCorpus.open(folder).annotations()


def test_trees_with_probabilities_serve_all_and_trees_without_are_not_parsed_for_them(place):
    variants = {
        "pascal": {"name": "pascal"},
        "ldd": LDD,
        "deps": {"name": "deps_san", "layers": [1]},
    }
    for name, variant in variants.items():
        run(place, "prepare", recipe(place, name, variant, parser=PARSED))
    found = annotations(place)
    assert sorted(facts["arcs"] for facts in found.values()) == [False, True]
    assert len(list((place / "data/parses").glob("*.conllu.gz"))) == 4
    (place / "second").mkdir()
    for name in ("ldd", "pascal"):
        run(place, "prepare", f"{name}.yaml", "--data", "second")
    # trees that came with probabilities are enough where only trees are needed
    assert len(list((place / "second/parses").glob("*.conllu.gz"))) == 2


def test_distributions_are_read_in_training_and_parsed_again_for_translating(place):
    _, said = run(place, "train", recipe(place, "ldd", LDD, parser=PARSED))
    check_translation(place, "ldd")
    # relations that the text does not have are reported once
    assert (
        said.count("no arc of the training text has odd, named in dependency_distribution.groups")
        == 1
    )
    run(place, "parse", "corpus/test.en", "-o", "with.conllu", "--arcs", "--device", "cpu")
    check_translation(place, "ldd", "--parses", "with.conllu")
    run(place, "parse", "corpus/test.en", "-o", "without.conllu", "--device", "cpu")
    text = (place / "corpus/test.en").read_bytes()
    _, said = run(place, "translate", "--parses", "without.conllu", text=text, code=1)
    assert "line 1: the tree has no probabilities of arcs, and a variant reads them" in said
    assert "synmt parse --arcs" in said


def given(place):
    """Name the files of the corpus one by one, so that its trees are taken as given."""
    splits = {}
    for split in ("train", "valid", "test"):
        path = place / "corpus" / split
        splits[split] = {
            "source": f"{path}.en",
            "target": f"{path}.de",
            "source_parses": f"{path}.en.conllu",
        }
    return {**splits, "test": {"test": splits["test"]}}


def parse_all(place):
    for split in ("train", "valid", "test"):
        run(
            place,
            "parse",
            f"corpus/{split}.en",
            "-o",
            f"corpus/{split}.en.conllu",
            "--arcs",
            "--overwrite",
        )


def test_given_trees_without_probabilities_are_refused_before_anything_runs(place):
    _, said = run(
        place, "train", recipe(place, "ldd", LDD, parser=PARSED, trees=given(place)), code=2
    )
    assert "dependency_distribution reads probabilities of arcs, and these trees have none" in said
    assert "train.en.conllu" in said
    assert "synmt parse --arcs" in said
    assert not (place / "runs/ldd").exists()


def test_given_trees_some_of_which_lack_probabilities_are_refused(place):
    parse_all(place)
    path = place / "corpus/valid.en.conllu"
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    blocks[2] = re.sub(r"Arcs=[^|\n]+\|?", "", blocks[2])
    path.write_text("\n\n".join(blocks), encoding="utf-8")
    _, said = run(
        place, "train", recipe(place, "ldd", LDD, parser=PARSED, trees=given(place)), code=1
    )
    assert "valid.en.conllu: the tree of line 3 has no probabilities of arcs" in said
    run(
        place,
        "prepare",
        recipe(place, "pascal", {"name": "pascal"}, parser=PARSED, trees=given(place)),
    )
    _, said = run(place, "train", "ldd.yaml", code=1)
    assert "some tree has no probabilities of arcs" in said


def test_a_corrupt_arc_is_named_with_file_sentence_and_token(place):
    parse_all(place)
    path = place / "corpus/train.en.conllu"
    lines = path.read_text(encoding="utf-8").split("\n\n")
    lines[4] = re.sub(r"Arcs=\d+:", "Arcs=9999:", lines[4], count=1)
    path.write_text("\n\n".join(lines), encoding="utf-8")
    _, said = run(
        place, "train", recipe(place, "ldd", LDD, parser=PARSED, trees=given(place)), code=1
    )
    assert re.search(r"train\.en\.conllu, sentence 5, line \d+: token 1", said)


@pytest.mark.parametrize(
    "parser",
    [
        {"control": "random"},
        {"control": "left"},
        {"control": "shuffled", "rewire": 0.5},
        {"rewire": 1.0, "seed": 9},
    ],
    ids=str,
)
def test_a_control_is_read_in_training_and_in_translating(place, parser):
    path = recipe(place, "control", {"name": "pascal"}, parser={**PARSED, **parser})
    run(place, "train", path, "training.max_steps=2", *SHORT)
    check_translation(place, "control")


def test_a_control_that_changes_trees_which_nothing_reads_is_refused(place):
    path = recipe(place, "plain", parser={**PARSED, "control": "random"})
    assert (
        "parser.control and parser.rewire change trees of the source"
        in run(place, "train", path, code=2)[1]
    )
    path = recipe(place, "pascal", {"name": "pascal"}, parser=PARSED, target_parser={"rewire": 0.5})
    assert "target_parser.rewire change trees of the target" in run(place, "train", path, code=2)[1]


def test_papers_mix_in_one_model(place):
    variants = [
        {"name": "pascal", "layers": [1], "heads": 1},
        {**LDD, "layers": [1], "heads": 2, "groups": [["nsubj"], ["obj"]]},
        {"name": "lisa", "layers": [1]},
        {"name": "tag_embedding"},
        {"name": "relative", "layers": [2]},
        {"name": "dbsa", "side": "target", "layers": [1]},
        {"name": "relative", "side": "target", "heads": 2, "layers": [1]},
    ]
    sections = {"parser": PARSED, "target_parser": GOLD, "model": {**MODEL, "encoder_layers": 2}}
    _, said = run(place, "train", recipe(place, "mixture", *variants, **sections))
    assert "lisa.source.1" in said
    assert "dbsa.target.1" in said
    check_translation(place, "mixture")


@pytest.mark.parametrize(
    ("variants", "said"),
    [
        (
            [{"name": "pascal", "heads": 3}, {"name": "lisa", "heads": 2}],
            "lisa needs 2 heads of layer 1, but 1 of 4",
        ),
        ([{"name": "lisa", "layers": [1, 1]}], "`layers` of lisa names a layer twice"),
        ([{"name": "pascal", "layers": []}], "`layers` of pascal is empty"),
        ([{"name": "tag_embedding"}, {"name": "tag_embedding", "size": 5}], "is named twice"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(place, variants, said):
    _, error = run(place, "train", recipe(place, "wrong", *variants, parser=PARSED), code=2)
    assert said in error
