"""JSON as it is written."""

import json
import math

from synmt.arrays import json_text


def test_json_has_null_for_infinity_and_nan_at_any_depth_and_all_else_as_python_writes_it():
    values = {"a": math.nan, "b": [1.5, (math.inf, {"c": -math.inf})], "d": "NaN", "e": None}
    assert (
        json_text(values) == '{"a": null, "b": [1.5, [null, {"c": null}]], "d": "NaN", "e": null}'
    )
    others = {"ä": [1, 2.5, True], 3: None}
    options = {"ensure_ascii": False, "indent": 2}
    assert json_text(others, **options) == json.dumps(others, **options)
