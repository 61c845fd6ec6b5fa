"""Systems through the command: distributions by the real parser, shared trees, controls, mixtures,
refusals."""

import re

import pytest
import yaml
from tiny import MODEL, synmt, write_recipe

from synmt.data.corpus import PreparedCorpus

pytestmark = pytest.mark.journey

PARSED = {"workers": 1, "device": "cpu"}
LDD = {"name": "dependency_distribution", "groups": [["nsubj"], ["obj", "iobj"], ["det"], ["odd"]]}
GOLD = {"control": "gold", **PARSED}
SHORT = ("training.average=1", "training.use=last")


def recipe(place, name, *variants, **sections):
    """Write a recipe for the folder of the corpus, or for what `sections` name."""
    syntax = {"variants": list(variants)}
    write_recipe(place / f"{name}.yaml", place / "corpus", syntax=syntax, **sections)
    return f"{name}.yaml"


def given(place, name, *variants):
    """Write a recipe that names the files of the corpus one by one, with their trees."""
    ends = {"source": "en", "target": "de", "source_parses": "en.conllu"}
    files = {
        split: {key: f"{place}/corpus/{split}.{end}" for key, end in ends.items()}
        for split in ("train", "valid", "test")
    }
    corpus = {**files, "test": {"test": files["test"]}}
    return recipe(place, name, *variants, parser=PARSED, corpus=corpus)


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
    run(place, "train", recipe(place, "ldd", LDD, parser=PARSED))
    check_translation(place, "ldd")
    run(place, "parse", "corpus/test.en", "-o", "with.conllu", "--arcs", "--device", "cpu")
    check_translation(place, "ldd", "--parses", "with.conllu")
    run(place, "parse", "corpus/test.en", "-o", "without.conllu", "--device", "cpu")
    text = (place / "corpus/test.en").read_bytes()
    _, said = run(place, "translate", "--parses", "without.conllu", text=text, code=1)
    assert "tree has no probabilities of arcs, and a variant reads them" in said
    assert "synmt parse --arcs" in said


def test_given_trees_some_of_which_lack_probabilities_are_refused_before_anything_runs(place):
    for split in ("train", "valid", "test"):
        trees = ("-o", f"corpus/{split}.en.conllu", "--arcs", "--overwrite")
        run(place, "parse", f"corpus/{split}.en", *trees)
    path = place / "corpus/valid.en.conllu"
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    blocks[2] = re.sub(r"Arcs=[^|\n]+\|?", "", blocks[2])
    path.write_text("\n\n".join(blocks), encoding="utf-8")
    _, said = run(place, "train", given(place, "ldd", LDD), code=1)
    assert "valid.en.conllu: the tree of line 3 has no probabilities of arcs" in said
    run(place, "prepare", given(place, "pascal", {"name": "pascal"}))
    _, said = run(place, "train", "ldd.yaml", code=1)
    assert "some tree has no probabilities of arcs" in said
    assert not (place / "runs").exists()


@pytest.mark.parametrize("change", ["control=random", "rewire=0.5"])
def test_changed_trees_are_read_in_training_and_in_translating(place, change):
    path = recipe(place, "control", {"name": "pascal"}, parser=PARSED)
    run(place, "train", path, f"parser.{change}", "training.max_steps=2", *SHORT)
    check_translation(place, "control")


MIXTURE = """
- {name: pascal, layers: [1], heads: 1}
- {name: dependency_distribution, layers: [1], heads: 2, groups: [[nsubj], [obj]]}
- {name: lisa, layers: [1]}
- {name: tag_embedding}
- {name: relative, layers: [2]}
- {name: dbsa, side: target, layers: [1]}
- {name: relative, side: target, heads: 2, layers: [1]}
"""


def test_papers_mix_in_one_model(place):
    sections = {"parser": PARSED, "target_parser": GOLD, "model": {**MODEL, "encoder_layers": 2}}
    path = recipe(place, "mixture", *yaml.safe_load(MIXTURE), **sections)
    _, said = run(place, "train", path)
    assert {"lisa.source.1", "dbsa.target.1"} <= set(re.findall(r"[\w.]+", said))
    check_translation(place, "mixture")
