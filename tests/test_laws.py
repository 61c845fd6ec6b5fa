"""The laws of the wings: without `synmt.fast`, all works, slower; without `synmt.cluster`, all that
is local works."""

from __future__ import annotations

import sys

import pytest
import torch
import yaml
from copied import IN_TWO, copy_project, count_passed, path_of
from small import random_batch, small_model
from small_run import LSTM, PASCAL, TEXT, make_run

from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.parallel.engine import using_cluster
from synmt.training.loss import Objective

pytest.importorskip("synmt.fast")

# the variant and the model
MODELS = yaml.safe_load(
    """
post: [{name: pascal}, {}]
pre: [{name: relative}, {norm: pre, embeddings: separate}]
modern:
- {name: localness, layers: [1]}
- {positions: rotary, norm_kind: rms, feed_forward: swiglu}
marian:
- {name: pascal, warm: 4}
- {positions: vaswani, feed_forward: swish, output_bias: true}
alibi: [{name: relative, side: target}, {positions: alibi, feed_forward: gelu}]
paths: [{name: path_relations}, {}]
lstm: [{name: latent_tree, attention: separate}, {architecture: lstm}]
graph: [{name: gcn}, {architecture: lstm}]
"""
)


@pytest.fixture
def without_wing(monkeypatch):
    """Make a function after which the wing is not there."""
    return lambda: monkeypatch.setitem(sys.modules, "synmt.fast", None)


@pytest.mark.parametrize("name", MODELS)
def test_losses_and_gradients_are_the_same_without_the_wing(name, without_wing):
    variant, options = MODELS[name]

    def train():
        model = small_model(variant, **options).eval()
        _, batch = random_batch(model, [4, 7, 2])
        losses = Objective(model, 0.1)(batch)
        sum(loss for name, loss in losses.items() if name != "nll").backward()
        return model, losses, {name: weight.grad for name, weight in model.named_parameters()}

    fast, *of_fast = train()
    without_wing()
    plain, *of_plain = train()
    assert "synmt.fast" in {type(part).__module__.rpartition(".")[0] for part in fast.modules()}
    assert not [part for part in plain.modules() if type(part).__module__.startswith("synmt.fast")]
    torch.testing.assert_close(of_fast, of_plain, rtol=1e-4, atol=1e-4)


def test_dropout_of_a_model_without_the_wing_is_that_of_torch(without_wing):
    without_wing()
    model = small_model(
        {"name": "gcn"}, dropout=0.5, attention_dropout=0.5, activation_dropout=0.5
    ).train()
    _, batch = random_batch(model, [4, 7])
    states = [model(batch).states for _ in range(2)]
    assert not torch.equal(*states)
    assert all(one.isfinite().all() for one in states)


@pytest.mark.journey
@pytest.mark.parametrize(
    ("variants", "beam"),
    [([PASCAL], {"beam_size": 4, "n_best": 2}), ([{"name": "gcn"}], {"beam_size": 1})],
)
def test_a_run_parses_and_translates_the_same_without_the_wing(
    variants, beam, tmp_path, without_wing
):
    run = make_run(tmp_path / "run", *variants, **({"model": LSTM} if variants != [PASCAL] else {}))
    found = []
    for leave_out in (lambda: None, without_wing):
        leave_out()
        found.append(list(Translator.load(run, device="cpu", **beam).translate(TEXT)))
    fast, plain = (
        [(each.text, each.score) for one in of for each in one.candidates] for of in found
    )
    assert [text for text, _ in fast] == [text for text, _ in plain]
    assert [score for _, score in fast] == pytest.approx([score for _, score in plain], abs=1e-4)


@pytest.mark.journey
def test_lower_precisions_need_the_wing_and_a_warning_says_so(tmp_path, without_wing, caplog):
    run = make_run(tmp_path / "run")
    without_wing()
    translations = [
        [
            one.text
            for one in Translator.load(run, device="cpu", precision=precision).translate(TEXT)
        ]
        for precision in ("float32", "int8")
    ]
    assert translations[0] == translations[1]
    assert (
        "without synmt.fast there is no int8, so everything is computed in float32" in caplog.text
    )


JOURNEYS = {
    "fast": "journey cli_train cli_translate translator pipeline",
    "cluster": "journey cli_parse cli_prepare cli_train cli_translate cli_grid translate_processes",
}


@pytest.mark.whole_suite
@pytest.mark.parametrize("wing", JOURNEYS)
def test_unit_tests_and_journeys_pass_in_a_project_without_a_wing(wing, tmp_path):
    place = copy_project(tmp_path / "project", wing)
    # an editable installation finds the folder in the project itself
    (place / "sitecustomize.py").write_text(f'import sys\nsys.modules["synmt.{wing}"] = None\n')
    for chosen in (["-m", "unit"], ["-m", "journey", *map(path_of, JOURNEYS[wing].split())]):
        assert count_passed(place, *IN_TWO, *chosen) > 50


def test_an_installation_without_the_wing_for_clusters_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "synmt.cluster", None)
    with pytest.raises(UsageError, match="clusters need the package"), using_cluster("tcp://a:1"):
        pass
