"""Jinja's sandbox with an end: loops, calls and filters ask whether the time of their template is over.

One operation between two of them takes as long as it does. Those that can take for ever by themselves are left out, or
refuse large numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sized
from functools import wraps
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.ext import loopcontrols
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pilotlight_engine.text.template_time import TemplateRefusal, check_time

MOST_BITS = 4096
"""Of a number that a template computes: products of longer ones take ever longer."""
MOST_PARTS = 2**20
"""Characters, or members, of what a template repeats or puts together: to sort or to join more takes long at once."""
LEFT_OUT = ("pprint", "random", "slice", "striptags", "urlize", "wordwrap", "xmlattr")
"""Filters that run for long without a turn of a loop, or, as `random`, would not make the same prompt elsewhere."""
TURN = "a turn of a loop"
"""The filter that asks at each of them. No template can name it."""


class TemplateWorld(ImmutableSandboxedEnvironment):
    """What templates may name, and where they ask whether their time is over."""

    intercepted_binops = frozenset(("*", "**", "+"))

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        self.filters["tojson"] = _to_json
        self.filters = {name: _counted(one) for name, one in self.filters.items() if name not in LEFT_OUT}
        self.filters[TURN] = _turn
        self.globals["raise_exception"] = _raise
        del self.globals["lipsum"]

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as jinja has it
        """A function or macro."""
        check_time()
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """A sum, a product or a power. Raises TemplateRefusal where it is too large."""
        if operator == "+":
            if isinstance(left, list | tuple) and isinstance(right, list | tuple):
                _check_parts(len(left) + len(right))
        elif operator == "*" and isinstance(left, Sized) is not isinstance(right, Sized):
            _check_parts(len(left) * right if isinstance(left, Sized) else len(right) * left)
        elif isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() + right.bit_length() if operator == "*" else left.bit_length() * abs(right)
            if bits > MOST_BITS:
                raise TemplateRefusal(f"the chat template computes a number of more than {MOST_BITS} bits")
        return super().call_binop(context, operator, left, right)

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        """The hook that jinja has for it: the code of a template, whose loops ask at each turn."""
        for loop in list(source.find_all(nodes.For)):
            turn = nodes.Filter(nodes.Const(None), TURN, [], [], None, None, lineno=loop.lineno)
            if loop.test is None:
                loop.body.insert(0, nodes.ExprStmt(turn, lineno=loop.lineno))
            else:  # what it passes over takes time too
                loop.test = nodes.And(turn, loop.test, lineno=loop.lineno)
        source.set_environment(self)
        return super()._generate(source, *args, **kwargs)


def _check_parts(count: Any) -> None:
    if isinstance(count, int) and count > MOST_PARTS:
        raise TemplateRefusal(f"the chat template makes a list or a text of more than {MOST_PARTS} parts")


def _counted(one: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that checks the time first. What jinja has written on it is kept."""

    @wraps(one)
    def counted(*args: Any, **kwargs: Any) -> Any:
        check_time()
        return one(*args, **kwargs)

    return counted


@pass_context  # so that jinja does not compute it once, beforehand
def _turn(context: Context, value: None) -> bool:  # noqa: ARG001 - as filters are called
    check_time()
    return True


def _to_json(value: Any, indent: int | None = None, **others: Any) -> str:
    """As models were trained with it: jinja's own escapes HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=others.get("separators"))


def _raise(text: str) -> None:
    raise TemplateRefusal(f"the chat template refuses them: {text}")
