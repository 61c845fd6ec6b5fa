import json
import math

from synmt.arrays import json_text


def test_json_has_null_for_infinity_and_nan_at_any_depth():
    values = {
        "a": math.nan,
        "b": [1.5, (math.inf, {"c": -math.inf})],
        "d": "NaN",
        "e": True,
        "f": None,
    }
    assert json.loads(json_text(values)) == {
        "a": None,
        "b": [1.5, [None, {"c": None}]],
        "d": "NaN",
        "e": True,
        "f": None,
    }


def test_other_values_are_written_as_python_writes_them():
    values = {"ä": [1, 2.5, "x"], 3: None}
    assert json_text(values, ensure_ascii=False, indent=2) == json.dumps(
        values, ensure_ascii=False, indent=2
    )
