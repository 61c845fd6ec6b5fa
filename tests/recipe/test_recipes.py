"""Recipes: which are refused with which message, and that every shipped recipe is valid."""

import json
import re
from pathlib import Path

import pytest
from places import ROOT

from synmt.errors import SynmtError, UsageError, all_in_one, naming
from synmt.recipe.load import check_recipe, load_recipe, recipe_values
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import dump_yaml, parse_yaml_value
from synmt.training.tree_sources.requirements import tree_requirements

RECIPES = sorted((ROOT / "recipes").rglob("*.yaml"))
ALIASES = "".join(f"x{i}: &x{i} [*x{i - 1}]\n" for i in range(1, 3000))
PAIR = {"source": "a.en", "target": "a.de"}
LEAST = {"source": "en", "target": "de", "corpus": {"name": "controlled"}}


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.journey
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_shipped_recipe_is_valid_and_survives_being_written(path, tmp_path):
    recipe = load_recipe(path)
    assert recipe.name == path.stem
    tree_requirements(recipe)
    again = write(tmp_path, "again.yaml", dump_yaml(recipe_values(recipe)))
    assert load_recipe(again) == recipe


def test_a_recipe_extends_another_and_says_only_what_differs(tmp_path):
    base = (
        "name: b\nsource: en\ntarget: de\ncorpus: {name: multi30k}\ntraining: {warmup: 5, "
        "seed: 3}\n"
    )
    write(tmp_path, "base.yaml", base)
    over = write(
        tmp_path,
        "over.yaml",
        "extends: base.yaml\ntraining: {seed: 4}\nmodel: {size: tiny, heads: 8}\n",
    )
    recipe = load_recipe(over)
    assert (recipe.name, recipe.training.warmup, recipe.training.seed) == ("over", 5, 4)
    assert (recipe.model.model_dim, recipe.model.heads, recipe.model.encoder_layers) == (128, 8, 4)


@pytest.mark.parametrize(
    ("base", "changed", "text"),
    [
        ({"name": "controlled"}, {"folder": "mine"}, {"folder": "mine"}),
        (
            {"name": "controlled", "test": {"hard": "controlled"}},
            {"folder": "mine"},
            {"folder": "mine"},
        ),
        ({"folder": "mine"}, {"name": "controlled"}, {"name": "controlled"}),
        ({"name": "multi30k"}, {"name": "controlled"}, {"name": "controlled"}),
        ({"folder": "mine", "valid": PAIR}, {"train": PAIR}, {"train": [PAIR]}),
        ({"folder": "mine", "valid": PAIR}, {"folder": None, "train": PAIR}, {"train": [PAIR]}),
    ],
)
def test_a_text_of_another_kind_replaces_that_of_the_base(tmp_path, base, changed, text):
    (tmp_path / "base.yaml").write_text(
        json.dumps({"source": "en", "target": "de", "corpus": base})
    )
    (tmp_path / "own.yaml").write_text(json.dumps({"extends": "base.yaml", "corpus": changed}))
    overrides = [f"corpus.{key}={json.dumps(value)}" for key, value in changed.items()]
    for recipe in (
        load_recipe(tmp_path / "own.yaml"),
        load_recipe(tmp_path / "base.yaml", overrides),
    ):
        corpus = recipe.corpus.model_dump(mode="json", exclude_defaults=True)
        assert {key: corpus[key] for key in ("name", "folder", "train") if key in corpus} == text
        assert ("valid" in corpus, "test" in corpus) == ("valid" in base, "test" in base)


@pytest.mark.parametrize(
    ("parsers", "models"),
    [
        ({}, ("compact", "official")),
        (
            {"parser": {"model": "auto"}, "target_parser": {"model": "auto"}},
            ("compact", "official"),
        ),
        (
            {"parser": {"model": "official"}, "target_parser": {"model": "mine"}},
            ("official", "mine"),
        ),
    ],
)
def test_auto_is_the_compact_parser_where_there_is_one(parsers, models):
    values = {"name": "a", "source": "en", "target": "de", "corpus": {"folder": "c"}, **parsers}
    recipe = check_recipe(values, where="a")
    assert (recipe.parser.model, recipe.target_parser.model) == models
    # what a run stores is read as the same recipe
    assert check_recipe(recipe_values(recipe), where="a") == recipe


def test_overrides_reach_every_key_and_list_items(tmp_path):
    text = dump_yaml({**LEAST, "syntax": {"variants": [{"name": "pascal", "heads": 2}]}})
    path = write(tmp_path, "r.yaml", text)
    overrides = [
        "training.learning_rate=7e-4",
        "model.size=small",
        "syntax.variants.0.heads=all",
        "name=other",
    ]
    recipe = load_recipe(path, overrides)
    assert recipe.training.learning_rate == 7e-4
    assert recipe.model.model_dim == 256
    assert recipe.syntax.variants[0].heads == "all"
    assert recipe.name == "other"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("7e-4", 7e-4),
            ("no", "no"),
            ("true", True),
            ("12", 12),
            ("[1, 2]", [1, 2]),
            ("null", None),
        ),
        # YAML 1.1 would read 64, and fail
        *(("1_000", 1000), ("0100", 100), ("-08", -8), ("1_", 1)),
    ],
)
def test_values_mean_what_they_look_like(text, value):
    assert parse_yaml_value(text) == value


@pytest.mark.parametrize(
    "text", ["08", "1e5", "0100", "-.5e3", "1_000", "no", "true", "~", ".inf", "0x1F", "2026-11-2"]
)
def test_a_string_that_looks_like_a_number_stays_a_string(text):
    assert parse_yaml_value(dump_yaml({"name": text, text: [text]})) == {"name": text, text: [text]}


def test_a_folder_or_other_bytes_in_place_of_a_recipe_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"a folder, not a recipe\. Name a file\.$"):
        load_recipe(tmp_path)
    inside = write(tmp_path, "recipe.yaml", dump_yaml(LEAST))
    with pytest.raises(
        UsageError, match=rf"a folder, not a recipe\. The recipe of this run is {inside}\.$"
    ):
        load_recipe(tmp_path)
    inside.write_text(dump_yaml(LEAST), encoding="utf-16")
    with pytest.raises(UsageError, match=r"recipe\.yaml: not UTF-8\. A recipe is text in UTF-8"):
        load_recipe(inside)


def test_an_override_changes_one_place_and_no_alias_of_it(tmp_path):
    files = "{source: a, target: b}"
    text = (
        "source: en\ntarget: de\ncorpus: "
        f"{{train: {files}, valid: &v {files}, test: {{2016: *v}}}}\n"
    )
    recipe = load_recipe(write(tmp_path, "r.yaml", text), ["corpus.valid.source=c"])
    assert [str(item.source) for item in recipe.corpus.items] == ["a", "c", "a"]
    recipe = load_recipe(tmp_path / "r.yaml", ["corpus.test.2016.source=c"])
    assert [str(item.source) for item in recipe.corpus.items] == ["a", "a", "c"]
    assert str(recipe.corpus.test["2016"].target) == "b"


@pytest.mark.parametrize("override", ["training.seed=!!int many", "training.seed=!!timestamp now"])
def test_a_value_that_yaml_cannot_read_is_a_message(tmp_path, override):
    with pytest.raises(UsageError, match=r"^override: not valid YAML"):
        load_recipe(write(tmp_path, "r.yaml", dump_yaml(LEAST)), [override])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"trainning": {}}, r"no key 'trainning'.*Did you mean 'training'\?"),
        (
            {"training": {"max_stepz": 3}},
            r"training has no key 'max_stepz'.*Did you mean 'max_steps'\?",
        ),
        (
            {"syntax": {"variants": "pascal"}},
            r"not 'pascal'\. `synmt train --keys syntax\.variants` shows its values",
        ),
        (
            {"training": {"max_steps": "many"}},
            r"training\.max_steps: must be a whole number, not 'many'\. "
            r"`synmt train --keys training\.max_steps` shows its values",
        ),
        ({"training": {"max_steps": 0}}, r"training\.max_steps: must be 1 or more"),
        (
            {"training": {"max_steps": None}},
            r"training\.max_steps: must be a whole number, but is empty\. ",
        ),
        (
            {"training": {"max_steps": True}},
            r"training\.max_steps: must be a whole number, not true\. ",
        ),
        ({"model": {"init": 3}}, r"model\.init: must be text, not 3"),
        ({"model": {"freeze": [""]}}, r"model\.freeze\.0: must be text that is not empty, not ''"),
        ({"training": {"seed": 1 << 64}}, r"training\.seed: .*less than 18446744073709551616"),
        ({"training": {"betas": [0.9]}}, r"training\.betas"),
        ({"training": {"betas": [0.9, 1.5]}}, r"training\.betas\.1: .*less than 1"),
        (
            {"corpus": {"train": {"sorce": "x"}}},
            r"corpus\.train has no key 'sorce'.*Did you mean 'source'\?",
        ),
        (
            {"corpus": {"test": {"t": {"lables": "x"}}}},
            r"corpus\.test\.t has no key 'lables'.*'labels'\?",
        ),
        ({"training": {"use": "average"}}, r"`use: average` needs `average: 2`"),
        ({"training": {"best": "bleu", "validation_beam_size": 0}}, r"`best: bleu` needs"),
        (
            {"training": {"decay": 0.9}},
            r"`decay` needs `schedule: plateau`, but the schedule is inverse_sqrt",
        ),
        ({"training": {"schedule": "plateau", "decay": 1}}, r"training\.decay: .*less than 1"),
        ({"decoding": {"length_penalty": 20}}, r"decoding\.length_penalty: .*must be 10 or less"),
        ({"decoding": {"beam_size": 20000}}, r"decoding\.beam_size: .*must be 10000 or less"),
        (
            {"training": {"validation_beam_size": 20000}},
            r"validation_beam_size: .*must be 10000 or less",
        ),
        ({"filters": {"max_punctuation": 25}}, r"filters\.max_punctuation: .*must be 1 or less"),
        ({"model": {"heads": 3}}, r"cannot be divided among 3 heads"),
        ({"model": {"model_dim": 1 << 62}}, r"model\.model_dim: .*must be 1048576 or less"),
        (
            {"model": {"architecture": "lstm", "embedding_dim": 1 << 62}},
            r"model\.embedding_dim: .*must be 1048576 or less",
        ),
        (
            {"model": {"feedforward_dim": 1 << 62}},
            r"model\.feedforward_dim: .*must be 1048576 or less",
        ),
        ({"model": {"encoder_layers": 10**30}}, r"model\.encoder_layers: .*must be 1000 or less"),
        ({"model": {"decoder_layers": 10**6}}, r"model\.decoder_layers: .*must be 1000 or less"),
        ({"vocabulary": {"size": 1 << 62}}, r"vocabulary\.size: .*must be 10000000 or less"),
        ({"model": {"size": "huge"}}, r"model\.size: .*'huge'"),
        ({"vocabulary": {"joint": False}}, r"`model.embeddings: shared` needs"),
        ({"corpus": {}}, r"give one of `name`, `folder`"),
        (
            {"corpus": {"name": "multi30k", "folder": "x"}},
            r"give one of.*\(corpus\.name=null removes",
        ),
        (
            {"corpus": {"folder": "x", "test": [{"id": ["a"]}]}},
            r"the id of a test set is a name, not \['a'\]",
        ),
        ({"name": "a/b"}, r"name: 'a/b' is not a valid folder name\. Use letters"),
        ({"name": "é" * 101}, r"a name has at most 200 bytes"),
        ({"syntax": {"variants": [{"heads": 2}]}}, r"'syntax\.variants\.0\.name' is missing"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused_with_key_and_reason(change, said):
    with pytest.raises(UsageError, match=f"r.yaml: .*{said}"):
        check_recipe({"name": "r", **LEAST, **change}, where="r.yaml")


def test_all_errors_are_reported_at_once():
    with pytest.raises(UsageError) as error:
        check_recipe(
            {"name": "r", **LEAST, "training": {"a": 1, "b": 2}, "sauce": 3}, where="r.yaml"
        )
    assert str(error.value).count("\n") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source: en\nsource: de\n", r"line 2.*duplicate key 'source'"),
        # a recipe has no other keys than strings
        ('1: en\n"1": de\n', r"line 2.*duplicate key '1'"),
        ('"null": en\n~: de\n', r"line 2.*duplicate key 'null'"),
        ("{a: 1}: b\n", "a key must be a string"),
        ("!!binary aGk=: b\n", "line 1: .*a key must be a string"),
        ("a: &a [*a]\n", r"r\.yaml: an alias names something that contains it"),
        ("a: [1,\nb: }\n", r"r\.yaml, line \d+: not valid YAML"),
        ("extends: r.yaml\n", "extends itself"),
        # PyYAML and libyaml refuse half of a surrogate pair at different places
        ('extends: "\\ud800"\n', r"r\.yaml(, line 1)?: not (a valid path: '|valid YAML)"),
        ('extends: "a\\0b"\n', r"r\.yaml: not a valid path: '"),
        (f"extends: {'a' * 251}\n", r"r\.yaml: not a valid path \(File name too long\): 'aaa"),
        # libyaml would overflow the stack and end the process
        (
            "source: " + "[" * 100_000 + "]" * 100_000,
            r"r\.yaml, line 1: values are nested too deeply",
        ),
        ("- " * 5000, r"r\.yaml, line 1: values are nested too deeply\. At most 100 levels\.$"),
        # each line holds the one above; with the recipe itself, line 100 is level 101
        ("x0: &x0 [1]\n" + ALIASES, r"r\.yaml, line 100: values are nested too deeply"),
        ('!!bool "maybe": 1\n', r"r\.yaml: not valid YAML: 'maybe'"),
        ("extends: base.yaml\n", r"r\.yaml extends .*base\.yaml: file not found"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused_with_the_reason(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        load_recipe(write(tmp_path, "r.yaml", text))


def test_a_recipe_may_extend_thousands_one_after_the_other(tmp_path):
    write(tmp_path, "0.yaml", dump_yaml({**LEAST, "name": "first"}))
    for i in range(1, 2000):
        write(tmp_path, f"{i}.yaml", f"extends: {i - 1}.yaml\ntraining: {{seed: {i}}}\n")
    recipe = load_recipe(tmp_path / "1999.yaml")
    assert (recipe.name, recipe.training.seed, recipe.source) == ("1999", 1999, "en")


def test_recipes_that_extend_each_other_are_refused_with_the_last_one(tmp_path):
    for name, base in (("a", "b"), ("b", "c"), ("c", "b")):
        write(tmp_path, f"{name}.yaml", f"extends: {base}.yaml\n")
    with pytest.raises(
        UsageError, match=r"b\.yaml: the recipe extends itself\. Change `extends` of .*c\.yaml\.$"
    ):
        load_recipe(tmp_path / "a.yaml")


def test_a_link_to_itself_is_no_recipe(tmp_path):
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    with pytest.raises(UsageError, match=r"loop\.yaml: file not found"):
        load_recipe(tmp_path / "loop.yaml")
    with pytest.raises(UsageError, match=r"r\.yaml extends .*loop\.yaml: file not found"):
        load_recipe(write(tmp_path, "r.yaml", "extends: loop.yaml\n"))


@pytest.mark.parametrize("override", ["a." * 5000 + "a=1", "a." * 59 + "a=" + "[" * 41 + "]" * 41])
def test_the_keys_of_an_override_count_as_levels(tmp_path, override):
    with pytest.raises(
        UsageError, match=r"^override, line 1: values are nested too deeply\. At most 100 levels\.$"
    ):
        load_recipe(write(tmp_path, "r.yaml", dump_yaml(LEAST)), [override])


@pytest.mark.parametrize("key", ["int", "a[b", "function-after", ""])
def test_an_unknown_key_that_looks_like_a_type_is_named(key):
    with pytest.raises(UsageError, match=f"r.yaml: a recipe has no key '{re.escape(key)}'"):
        check_recipe({"name": "r", **LEAST, key: 1}, where="r.yaml")


def test_a_missing_recipe_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"^[^ ]*none\.yaml: file not found\.$"):
        load_recipe(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", ["plain.yml", "plian", "plian.yaml"])
def test_a_recipe_with_another_ending_or_a_similar_name_is_offered(tmp_path, name):
    path = write(tmp_path, "plain.yaml", "")
    with pytest.raises(UsageError, match=f"{name}: file not found. Did you mean '{path}'"):
        load_recipe(tmp_path / name)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("max_steps=100", r"no key 'max_steps'.*Did you mean 'training\.max_steps'\?"),
        ("training.batch_size=100", r"no key 'batch_size'.*Did you mean 'decoding\.batch_size'\?"),
        ("workers=3", r"'parser\.workers' or 'target_parser\.workers'\?"),
    ],
)
def test_a_key_of_another_section_is_offered_with_its_section(tmp_path, override, message):
    with pytest.raises(UsageError, match=message):
        load_recipe(write(tmp_path, "r.yaml", dump_yaml(LEAST)), [override])


def test_an_error_of_a_key_names_its_file_and_so_does_each_of_several():
    with (
        pytest.raises(UsageError, match=r"^r\.yaml: syntax: odd\. Fix it\.$"),
        naming(Path("r.yaml")),
    ):
        raise UsageError("odd", where="syntax", do="Fix it")
    with pytest.raises(SynmtError, match=r"^r\.yaml: a\.\nr\.yaml: b\.$"), naming(Path("r.yaml")):
        raise all_in_one([SynmtError("a"), SynmtError("b")])


@pytest.mark.parametrize(
    "override",
    [
        "training.max_steps",
        "=3",
        "source.code=en",
        "syntax.variants.4.heads=2",
        "corpus.train.0.source=x",
    ],
)
def test_an_override_that_reaches_nothing_is_refused(override, tmp_path):
    corpus = {"train": ["not a mapping"]}
    path = write(
        tmp_path, "r.yaml", dump_yaml({**LEAST, "corpus": corpus, "syntax": {"variants": []}})
    )
    with pytest.raises(UsageError, match=r"override|an index of a list|has no keys"):
        load_recipe(path, [override])


def test_an_item_that_a_list_does_not_have(tmp_path):
    path = write(
        tmp_path,
        "r.yaml",
        dump_yaml({**LEAST, "syntax": {"variants": [{"name": "pascal", "layers": [1]}]}}),
    )
    with pytest.raises(UsageError, match=r"list with 1 item\. Its only item is 0"):
        load_recipe(path, ["syntax.variants.3.heads=2"])


def test_every_key_has_a_meaning():
    sections = [Recipe] + [field.annotation for field in Recipe.model_fields.values()]
    for section in sections:
        for name, field in getattr(section, "model_fields", {}).items():
            if not hasattr(field.annotation, "model_fields"):
                assert field.description, f"{section.__name__}.{name}"


def test_overrides_are_a_list_of_texts_in_utf_8(tmp_path):
    path = write(tmp_path, "a.yaml", dump_yaml(LEAST))
    with pytest.raises(
        UsageError, match=r"overrides: must be a list of texts, not one text. Write \['name=x'\]"
    ):
        load_recipe(path, "name=x")
    # as Python passes on a byte of the command line that is not UTF-8
    with pytest.raises(UsageError, match=r"'n\\udce4me=1' is not UTF-8. Write it in UTF-8"):
        load_recipe(path, [b"n\xe4me=1".decode("utf-8", "surrogateescape")])
