"""The facts about runs on a page."""

from __future__ import annotations

import json

import pytest
import yaml
from cases import cases
from small_run import LSTM, PASCAL, make_run
from tiny import write_lines

from synmt.analysis.run_facts import facts_table, run_facts

FACTS = """
recipe => plain => reader
languages => en → de => en → de
corpus => controlled => controlled
model => architecture: lstm, encoder_layers: 2, decoder_layers: 2, model_dim: 32 => \
architecture: transformer, encoder_layers: 2, decoder_layers: 2, model_dim: 32, heads: 4
variants => => name: pascal, layers: [1], heads: 2
trees => model: compact => model: compact
parser => => compact, en
steps => 1 => 1
finished => 2026-01-01 => 2026-01-01
"""


def test_each_run_has_a_column_of_facts(tmp_path):
    plain = make_run(tmp_path / "plain", parser=False, model=LSTM)
    reader = make_run(tmp_path / "reader", PASCAL)
    step = {"kind": "step", "step": 1, "seconds": 100, "processor_seconds": 150, "tokens": 5}
    log = [step | {"joules": None, "memory": 7e6}, {"kind": "end", "step": 1}]
    write_lines(plain.log, map(json.dumps, log))
    table = facts_table([plain, reader])
    assert [column.title for column in table.columns] == ["run", "plain", "reader"]
    shown = {row[0]: list(row) for row in table.rows}
    assert "training 1 min 40 s" in shown.pop("cost")[1]
    assert sorted(shown.values()) == sorted(cases(FACTS))


CHANGED = """
{} => {control: gold} => name: pascal => model: compact, control: gold
{ignore: 0.3, layers: [1, 2], heads: 2} => {rewire: 0.25} => \
name: pascal, layers: [1, 2], heads: 2, ignore: 0.3 => model: compact, rewire: 0.25
"""


@pytest.mark.parametrize(("options", "section", "variant", "trees"), cases(CHANGED))
def test_variants_and_changes_to_the_trees_are_named(tmp_path, options, section, variant, trees):
    made = {"name": "pascal", **yaml.safe_load(options)}
    run = make_run(tmp_path / "run", made, parser=False)
    recipe = run.recipe()
    changed = recipe.parser.model_copy(update=yaml.safe_load(section))
    run.write_recipe(recipe.model_copy(update={"parser": changed}))
    run.write_info(steps=None, finished_at=None)
    expected = {"variants": variant, "trees": trees, "steps": "", "finished": ""}
    assert expected.items() <= run_facts(run).items()
