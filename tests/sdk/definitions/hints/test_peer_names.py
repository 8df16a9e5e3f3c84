"""Names of other platforms are answered with what there is here."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

import pilotlight
from pilotlight import App, Function
from pilotlight.definitions.hints.peer_names import APP_NAMES, FUNCTION_NAMES, MODULE_NAMES


@pytest.mark.parametrize("name", sorted(MODULE_NAMES))
def test_an_import_that_works_elsewhere_says_what_there_is(name: str) -> None:
    """Both ways of writing it."""
    with pytest.raises(ImportError) as caught:
        getattr(pilotlight, name)
    assert str(caught.value) == f"there is no pilotlight.{name}: {MODULE_NAMES[name]}."
    with pytest.raises(ImportError, match=f"there is no pilotlight.{name}: "):
        exec(f"from pilotlight import {name}")  # noqa: S102 - as a user writes it


@pytest.mark.parametrize("name", sorted(APP_NAMES))
def test_an_attribute_of_an_app_says_what_there_is(name: str) -> None:
    """`@app.local_entrypoint()` and its like."""
    with pytest.raises(AttributeError) as caught:
        getattr(App("elsewhere"), name)
    assert APP_NAMES[name] in str(caught.value)


@pytest.mark.parametrize("name", sorted(FUNCTION_NAMES))
def test_an_attribute_of_a_function_says_what_there_is(name: str) -> None:
    """Of a decorated one; of one found by name it may be a method."""

    @App("elsewhere").gpu_function
    def embed(text: str) -> str:
        return text

    with pytest.raises(AttributeError) as caught:
        getattr(embed, name)
    assert FUNCTION_NAMES[name] in str(caught.value)


def test_no_such_name_is_ours() -> None:
    """It would be hidden; and a module of that name could not be imported any more."""
    assert not MODULE_NAMES.keys() & set(pilotlight.__all__)
    assert not [name for name in MODULE_NAMES if find_spec(f"pilotlight.{name}")]
    assert not [name for name in APP_NAMES if hasattr(App("a"), name)]
    assert not [name for name in FUNCTION_NAMES if hasattr(Function, name)]


def test_the_names_cost_an_import_nothing() -> None:
    """They are read when one of them is asked for."""
    code = "import sys, pilotlight; pilotlight.App; print('pilotlight.definitions.hints.peer_names' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
