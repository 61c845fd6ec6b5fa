"""The facts about runs on a page."""

from __future__ import annotations

import json

import pytest
from small_run import LSTM, PASCAL, make_run

from synmt.analysis.run_facts import facts_table, run_facts


def test_each_run_has_a_column_of_facts(tmp_path):
    plain, reader = (
        make_run(tmp_path / "plain", parser=False),
        make_run(tmp_path / "reader", PASCAL),
    )
    step = {"seconds": 100, "processor_seconds": 150, "tokens": 5, "joules": None, "memory": 7e6}
    log = [{"kind": "step", "step": 1, **step}, {"kind": "end", "step": 1}]
    plain.log.write_text("".join(f"{json.dumps(record)}\n" for record in log))
    table = facts_table([plain, reader])
    assert [column.title for column in table.columns] == ["run", "plain", "reader"]
    facts = {name: values for name, *values in table.rows}
    assert facts["languages"] == ["en → de", "en → de"]
    assert facts["corpus"] == ["controlled", "controlled"]
    assert facts["model"] == ["transformer, 2 + 2 layers, width 32, 4 heads"] * 2
    assert facts["variants"] == ["none", "pascal (source, layer 1, 2 heads)"]
    assert facts["parser"] == ["–", "Stanza (compact, en)"]
    assert (facts["time of training"], facts["processor time"]) == (
        ["1 min 40 s", "–"],
        ["2 min 30 s", "–"],
    )
    assert "time of parsing" not in facts, "nobody knows it"
    assert (facts["steps"], facts["finished"]) == (["1", "1"], ["2026-01-01", "2026-01-01"])


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        (
            PASCAL | {"ignore": 0.3, "layers": [1, 2]},
            "pascal (source, layers 1, 2, 2 heads, ignore 0.3)",
        ),
        ({"name": "pascal", "layers": "all", "heads": 1}, "pascal (source, all layers, 1 head)"),
        ({"name": "pascal", "side": "source"}, "pascal (source)"),
    ],
)
def test_a_variant_is_named_with_its_layers_and_options(tmp_path, variant, said):
    run = make_run(tmp_path / "run", variant, parser=False)
    run.write_info(steps=None, finished_at=None)
    facts = run_facts(run)
    assert (facts["variants"], facts["steps"], facts["finished"]) == (said, "–", "–")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"rewire": 0.25}, "Stanza (compact, en), 25 % rewired"),
        ({"control": "random"}, "Stanza (compact, en), random trees"),
        ({"control": "gold"}, "gold trees"),
    ],
)
def test_changes_to_the_trees_are_named(tmp_path, section, said):
    run = make_run(tmp_path / "run", PASCAL)
    recipe = run.recipe()
    run.write_recipe(recipe.model_copy(update={"parser": recipe.parser.model_copy(update=section)}))
    if section == {"control": "gold"}:
        run.write_info(parser=None)
    assert run_facts(run)["parser"] == said


def test_an_lstm_has_no_heads(tmp_path):
    assert (
        run_facts(make_run(tmp_path / "run", model=LSTM))["model"] == "lstm, 2 + 2 layers, width 32"
    )
