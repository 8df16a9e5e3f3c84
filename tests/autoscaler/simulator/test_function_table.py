"""Settings of simulated functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UNSET

from pilotlight_autoscaler.simulator.function_table import BadFunctionTable, FunctionTable, read_functions


def test_a_row_goes_before_the_options_and_these_before_defaults(tmp_path: Path) -> None:
    path = tmp_path / "functions.csv"
    path.write_text("function,tenant,load_s,gpu\nf,,9,H100|A100\nf,acme,7,\n")
    table = read_functions(path, {"load_s": "5", "slots": "4"})

    own, others, unknown = (table.function(key) for key in (("acme", "f"), ("beta", "f"), ("", "g")))

    assert (own.load_s, others.load_s, unknown.load_s) == (7.0, 9.0, 5.0)
    assert ([each.type for each in others.spec.gpu], own.spec.gpu[0].type) == (["H100", "A100"], "ANY")
    assert (own.spec.slots, own.spec.scaledown_window, table.duration_s(("", "f"))) == (4, 60.0, 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name\nf\n", "'name' is no column"),
        ("load_s\n1\n", "there is no column function"),
        ("function,load_s\nf,1\ng,x\n", "line 3: load_s: expected a number from 0 to 86400, not 'x'"),
        ("function,slots\nf,1.5\n", "line 2: slots: expected a whole number"),
        ("function,gpu\nf,?\n", "line 2: gpu="),
        ("function,gpu\nf\n", "line 2: expected as many cells"),
        ("function\nf\nf\n", "line 3: f has a row above"),
    ],
)
def test_a_bad_row_is_refused_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "functions.csv"
    path.write_text(text)
    with pytest.raises(BadFunctionTable) as caught:
        read_functions(path, {})
    assert said in str(caught.value)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BadFunctionTable, match="min_containers is more than max_containers"):
        FunctionTable(given={"min_containers": "20"}).function(("", "f"))
    with pytest.raises(BadFunctionTable, match="zero_window_s is less than window_s"):
        FunctionTable(given={"zero_window_s": "20"}).function(("", "f"))


def test_the_last_container_has_a_window_of_its_own() -> None:
    """That of the others, if nothing is said."""
    of_its_own, as_others = ({"window_s": "20", "zero_window_s": text} for text in ("90", ""))
    assert FunctionTable(given=of_its_own).function(("", "f")).spec.zero_window == 90.0
    assert FunctionTable(given=as_others).function(("", "f")).spec.zero_window is UNSET
