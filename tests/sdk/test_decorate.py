"""`gpu_function`, bare and with options; `definitions/test_options.py` has each option."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from pilotlight import (
    App,
    Cls,
    Function,
    OptionError,
    gpu_function,
    method,
)
from pilotlight.definitions.options import Options


def test_help_lists_every_option() -> None:
    """Each option is a line, and the help of an app's decorator refers to them."""
    help_text = inspect.getdoc(gpu_function) or ""
    options = re.findall(r"^    (\w+): ", help_text.partition("Options:")[2].partition("Raises:")[0], re.MULTILINE)
    assert options == list(Options.__annotations__)
    assert "`pilotlight.gpu_function`, whose help lists the options" in (inspect.getdoc(App.gpu_function) or "")


def test_the_decorator_works_bare_and_with_options() -> None:
    """Both make a Function, or of a class a Cls."""

    def bare() -> None: ...

    class Model:
        @method()
        def predict(self) -> None: ...

    assert isinstance(gpu_function(bare), Function)
    with_options: Function[..., Any] = gpu_function(timeout=5)(bare)
    assert (with_options.spec.timeout, with_options.__wrapped__) == (5.0, bare)
    assert isinstance(gpu_function(gpu="any")(Model), Cls)


def test_an_unknown_option_is_refused() -> None:
    """The decorator and that of an app have the same options."""
    for decorator in (gpu_function, App("tests").gpu_function):
        with pytest.raises(OptionError, match=r"keep_warm= is another platform's word; here it is min_containers="):
            decorator(keep_warm=1)(lambda: None)  # type: ignore[call-overload]
