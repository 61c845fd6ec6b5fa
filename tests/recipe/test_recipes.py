"""Recipes: which are refused with which message, and that every shipped recipe is valid."""

import json
from pathlib import Path

import pytest
import shipped
from each import of_each
from refusing import assert_refused
from shipped import PATHS

from synmt.errors import SynmtError, UsageError, all_in_one, naming
from synmt.recipe.load import annotated_recipe, check_recipe, load_recipe, recipe_values
from synmt.recipe.yaml_text import dump_yaml, parse_yaml_value

LEAST = {"source": "en", "target": "de", "corpus": {"name": "controlled"}}


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.journey
@of_each(PATHS)
def test_every_shipped_recipe_is_valid_and_survives_being_written(name):
    again = parse_yaml_value(dump_yaml(recipe_values(shipped.recipe(name))))
    assert check_recipe(again, where=name) == shipped.recipe(name)
    assert shipped.recipe(name).name == name


def test_a_recipe_extends_another_and_says_only_what_differs(tmp_path):
    base = {**LEAST, "name": "b", "training": {"warmup": 5, "seed": 3}}
    write(tmp_path, "base.yaml", dump_yaml(base))
    text = "extends: base.yaml\ntraining: {seed: 4}\nmodel: {size: tiny, heads: 8}\n"
    recipe = load_recipe(write(tmp_path, "over.yaml", text))
    assert (recipe.name, recipe.training.warmup, recipe.training.seed) == ("over", 5, 4)
    assert (recipe.model.model_dim, recipe.model.heads, recipe.model.encoder_layers) == (128, 8, 4)


ANNOTATED = """
name: mine  # default
source: en  # multi30k-tiny.yaml
  size: 6000  # multi30k-tiny.yaml
  size: small  # command line
  variants:  # FILE, command line
    heads: 2
  max_steps: 300  # FILE
  learning_rate: 0.005  # multi30k-tiny.yaml
  beam_size: 3  # command line
  length_penalty: 0.6  # default
  clip_norm: 0.0  # default
"""


def test_a_recipe_is_written_in_full_with_where_each_value_comes_from(tmp_path):
    mine = "training: {max_steps: 300}\nsyntax: {variants: [{name: pascal}]}\n"
    path = write(tmp_path, "mine.yaml", f"extends: multi30k-pascal\n{mine}")
    overrides = ["syntax.variants.0.heads=2", "model.size=small", "decoding={beam_size: 3}"]
    text = annotated_recipe(path, overrides)
    lines = text.replace(str(path), "FILE").splitlines()
    assert not set(ANNOTATED.strip().splitlines()) - set(lines)
    again = load_recipe(write(tmp_path, "again.yaml", text))
    assert again == load_recipe(path, overrides)


@pytest.mark.parametrize("folder", ["/a b c" * 40, "it's: # " * 40, "a\nb"])
def test_a_text_of_several_lines_is_written_in_full(tmp_path, folder):
    overrides = [f"corpus.folder={json.dumps(folder)}", "name=again"]
    text = annotated_recipe("multi30k-tiny", overrides)
    again = load_recipe(write(tmp_path, "again.yaml", text))
    assert again == load_recipe("multi30k-tiny", overrides)


@pytest.mark.parametrize(
    "text", ["08", "1e5", "0100", "-.5e3", "1_000", "no", "true", "~", ".inf", "0x1F", "2026-11-2"]
)
def test_a_string_that_looks_like_a_number_stays_a_string(text):
    assert parse_yaml_value(dump_yaml({"name": text, text: [text]})) == {"name": text, text: [text]}


def test_a_recipe_may_extend_thousands_one_after_the_other(tmp_path):
    write(tmp_path, "0.yaml", dump_yaml({**LEAST, "name": "first"}))
    for i in range(1, 2000):
        write(tmp_path, f"{i}.yaml", f"extends: {i - 1}.yaml\ntraining: {{seed: {i}}}\n")
    recipe = load_recipe(tmp_path / "1999.yaml")
    assert (recipe.name, recipe.training.seed, recipe.source) == ("1999", 1999, "en")


def test_an_error_of_a_key_names_its_file_and_so_does_each_of_several():
    with (
        pytest.raises(UsageError, match=r"^r\.yaml: syntax: odd\. Fix it\.$"),
        naming(Path("r.yaml")),
    ):
        raise UsageError("odd", where="syntax", do="Fix it")
    with pytest.raises(SynmtError, match=r"^r\.yaml: a\.\nb\.$"), naming(Path("r.yaml")):
        raise all_in_one([SynmtError("a"), SynmtError("b")])


@pytest.mark.parametrize("name", ["plain.yml", "plian", "plian.yaml"])
def test_a_recipe_with_another_ending_or_a_similar_name_is_offered(tmp_path, name):
    write(tmp_path, "plain.yaml", "")
    message = f"no file or shipped recipe '.*{name}'. Did you mean 'plain'"
    assert_refused(message, load_recipe, tmp_path / name)


TEXTS = """
name: controlled | folder: mine | folder
name: controlled, test: {hard: controlled} | folder: mine | folder test
folder: mine | name: controlled | name
name: multi30k | name: controlled | name
folder: mine, valid: b | train: {source: a.en, target: a.de} | train valid
folder: mine, valid: b | folder: null, train: {source: a.en, target: a.de} | train valid
"""


@pytest.mark.parametrize("line", TEXTS.strip().splitlines())
def test_a_text_of_another_kind_replaces_that_of_the_base(tmp_path, line):
    base, changed, keys = line.split(" | ")
    write(tmp_path, "base.yaml", f"source: en\ntarget: de\ncorpus: {{{base}}}\n")
    own = write(tmp_path, "own.yaml", f"extends: base.yaml\ncorpus: {{{changed}}}\n")
    values = parse_yaml_value(f"{{{changed}}}")
    overrides = [f"corpus.{key}={json.dumps(value)}" for key, value in values.items()]
    for recipe in (load_recipe(own), load_recipe(tmp_path / "base.yaml", overrides)):
        corpus = recipe.corpus.model_dump(mode="json", exclude_defaults=True)
        assert sorted(corpus) == keys.split()
        assert corpus.get("name") == values.get("name")


@pytest.mark.parametrize(
    ("parsers", "models"),
    [
        ("", "compact official"),
        ("parser.model=auto target_parser.model=auto", "compact official"),
        ("parser.model=official target_parser.model=mine", "official mine"),
    ],
)
def test_auto_is_the_compact_parser_where_there_is_one(least, parsers, models):
    recipe = load_recipe(least, parsers.split())
    assert f"{recipe.parser.model} {recipe.target_parser.model}" == models
    # what a run stores is read as the same recipe
    assert check_recipe(recipe_values(recipe), where="a") == recipe


@pytest.fixture
def least(tmp_path):
    """Write a recipe with all that it must have, and a variant."""
    variants = {"variants": [{"name": "pascal", "heads": 2}]}
    return write(tmp_path, "r.yaml", dump_yaml({**LEAST, "syntax": variants}))


def test_overrides_reach_every_key_and_list_items(least):
    overrides = "training.learning_rate=7e-4 model.size=small syntax.variants.0.heads=all name=b"
    recipe = load_recipe(least, overrides.split())
    assert recipe.training.learning_rate == 7e-4
    assert (recipe.model.model_dim, recipe.syntax.variants[0].heads) == (256, "all")
    assert recipe.name == "b"


def test_an_override_changes_one_place_and_no_alias_of_it(tmp_path):
    files = "{source: a, target: b}"
    corpus = f"{{train: {files}, valid: &v {files}, test: {{2016: *v}}}}"
    path = write(tmp_path, "r.yaml", f"source: en\ntarget: de\ncorpus: {corpus}\n")
    for key, expected in (("valid", "aca"), ("test.2016", "aac")):
        recipe = load_recipe(path, [f"corpus.{key}.source=c"])
        assert [str(item.source) for item in recipe.corpus.items] == list(expected)
        assert str(recipe.corpus.test["2016"].target) == "b"


def test_values_mean_what_they_look_like():
    # YAML 1.1 would read 64 for 0100, and fail for the next
    text = "[7e-4, no, true, 12, null, 1_000, 0100, -08, 1_]"
    assert parse_yaml_value(text) == [7e-4, "no", True, 12, None, 1000, 100, -8, 1]


def lines_of(table):
    """Split a table into lines of an override or a file, and the message that refuses it."""
    return [line.strip().split("   ", 1) for line in table.strip().splitlines()]


WRONG_VALUES = r"""
trainning={}   no key 'trainning'\. Did you mean 'training'\?
training.max_stepz=3   no key 'training\.max_stepz'\. Did you mean 'training\.max_steps'\?
max_steps=100   no key 'max_steps'\. Did you mean 'training\.max_steps'\?
workers=3   no key 'workers'\. Did you mean 'parser\.workers'\?
a[b=1   there is no key
syntax.variants=pascal   not 'pascal'\. `synmt train --keys variants` shows its values
training.max_steps=many   max_steps: must be a valid integer, not 'many'\. `synmt train --keys
training.max_steps=0   `max_steps: 0` needs `use: last`
training.max_steps=null   training\.max_steps: must be a valid integer, not None\.
training.max_steps=true   training\.max_steps: must be a valid integer, not True\.
model.init=3   model\.init: input is not a valid path
model.freeze=['']   model\.freeze\.0: string should have at least 1 character, not ''
training.seed=18446744073709551616   training\.seed: .*less than 18446744073709551616
training.betas=[0.9]   training\.betas
training.betas=[0.9, 1.5]   training\.betas\.1: .*less than 1
syntax.variants.0.layers=x   syntax\.variants\.0\.layers: must be a valid .*, not 'x'
corpus.train={sorce: x}   no key 'corpus\.train\.0\.sorce'.*Did you mean 'corpus\.train\[\]\.source'
corpus.test={t: {lables: x}}   no key 'corpus\.test\.t\.lables'
training.use=average   `use: average` needs `average: 2`
training={cuda_graphs: true, accumulate: 2}   `cuda_graphs` needs `accumulate: 1`, without `compile`
training={cuda_graphs: true, compile: true}   `cuda_graphs` needs `accumulate: 1`, without `compile`
training={best: bleu, validation_beam_size: 0}   `best: bleu` needs
training={schedule: plateau, decay: 1}   training\.decay: .*less than 1
decoding.length_penalty=20   decoding\.length_penalty: .*must be less than or equal to 10
decoding.beam_size=20000   decoding\.beam_size: .*must be less than or equal to 10000
training.validation_beam_size=20000   validation_beam_size: .*must be less than or equal to 10000
model.heads=3   cannot be divided among 3 heads
model.model_dim=1048577   model\.model_dim: .*must be less than or equal to 1048576
model.encoder_layers=1000000000000000000000000000000   encoder_layers: .*must be less than or
model.size=huge   model\.size: .*'huge'
vocabulary.joint=false   `model.embeddings: shared` needs
corpus={}   give one of `name`, `folder`
corpus={name: multi30k, folder: x}   give one of.*here: name, folder \(corpus\.name=null removes
corpus={folder: x, test: [{id: [a]}]}   test.*id: must be a valid string, not \['a'\]
syntax={variants: [{name: lisa, loss_steps: [0, 3]}]}   greater than or equal to 1
syntax={variants: [{name: lisa, loss_steps: [4, 3]}]}   the first step comes after the last one
syntax={variants: [{heads: 2}]}   syntax\.variants\.0\.name: field required
name=a/b   name: string should match pattern .*, not 'a/b'
training.max_steps   not an override
=3   not an override
source.code=en   'source.code' is not in the recipe
syntax.variants.4.heads=2   'syntax\.variants\.4\.heads' is not in the recipe
corpus={train: [x]}   `train` also needs `valid`
training.seed=!!int many   ^override: not valid YAML
training.seed=!!timestamp now   ^override: not valid YAML
"""


@pytest.mark.parametrize(("override", "message"), lines_of(WRONG_VALUES))
def test_a_value_that_cannot_work_is_refused_with_key_and_reason(least, override, message):
    assert_refused(message, load_recipe, least, [override])


def test_all_errors_are_reported_at_once(least):
    with pytest.raises(UsageError) as error:
        load_recipe(least, ["training.a=1", "training.b=2", "sauce=3"])
    assert str(error.value).count("\n") == 2


# PyYAML and libyaml refuse half of a surrogate pair at different places
WRONG_FILES = r"""
source: en\nsource: de\n   line 2.*a key must be a string, and unique
1: en\n"1": de\n   line 2.*a key must be a string, and unique
{a: 1}: b\n   a key must be a string
!!binary aGk=: b\n   r\.yaml: not valid YAML: keys must be
a: &a [*a]\n   r\.yaml: not valid YAML: Circular reference
a: [1,\nb: }\n   r\.yaml, line \d+: not valid YAML
!!bool "maybe": 1\n   r\.yaml: not valid YAML: 'maybe'
extends: [a, b]\n   r\.yaml: `extends` must be the path or the name of one recipe
extends: "a\0b"\n   r\.yaml: extends: there is no file or shipped recipe
extends: base.yaml\n   r\.yaml: extends: there is no file or shipped recipe 'base\.yaml'
extends: loop.yaml\n   r\.yaml: extends: there is no file or shipped recipe 'loop\.yaml'
extends: b.yaml\n   b\.yaml: the recipe extends itself\. Change `extends` of .*c\.yaml\.$
"""
LONG_FILES = {
    f"extends: {'a' * 251}\n": "there is no file or shipped recipe 'aaa",
    "source: " + "[" * 100_000 + "]" * 100_000: "r.yaml, line 1: not valid YAML: ",
}


def test_a_file_that_is_no_recipe_is_refused_with_the_reason(tmp_path):
    write(tmp_path, "b.yaml", "extends: c.yaml\n")
    write(tmp_path, "c.yaml", "extends: b.yaml\n")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    files = {text.replace("\\n", "\n"): message for text, message in lines_of(WRONG_FILES)}
    for text, message in (files | LONG_FILES).items():
        assert_refused(message, load_recipe, write(tmp_path, "r.yaml", text))
    for name in ("loop", "none"):
        assert_refused("there is no file or shipped", load_recipe, tmp_path / f"{name}.yaml")
    (tmp_path / "r.yaml").write_bytes(b"\xff")
    assert_refused(r"r\.yaml: cannot read the file as UTF-8", load_recipe, tmp_path / "r.yaml")
