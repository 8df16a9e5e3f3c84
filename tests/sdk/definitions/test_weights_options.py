"""`weights=` of a function."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import gpu_function
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.weights_options import weights_of


def test_a_list_names_what_was_pushed() -> None:
    """With or without digests; it is no part of the specification."""

    @gpu_function(weights=["llama", f"bert@{'a' * 8}"], app="weights-options")
    def f() -> None: ...

    assert f.weights == ("llama", f"bert@{'a' * 8}")
    assert f.spec.placing.weights == ""


def test_a_text_is_a_name_by_which_nodes_are_preferred() -> None:
    """As it was."""

    @gpu_function(weights="llama", app="weights-options", name="g")
    def f() -> None: ...

    assert (f.weights, f.spec.placing.weights) == ((), "llama")


@pytest.mark.parametrize("value", [["a/b"], ["m@x"], [1], 1, {"m": 1}, ["m", "m"], ["m", f"m@{'a' * 8}"]])
def test_what_is_no_list_of_names_is_refused(value: Any) -> None:
    """Naming the option."""
    with pytest.raises(OptionError, match="weights"):
        weights_of({"weights": value})
