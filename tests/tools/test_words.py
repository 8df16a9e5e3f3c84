"""Names are judged where they are defined, and what replaces them is said."""

from __future__ import annotations

import ast

import pytest

from tools.vocabulary import VAGUE_VERBS, VERBS
from tools.words import Module, class_faults, concept_faults, faults, glossary_faults, module_faults, verb_faults

GLOSSARY = "| word | meaning | in the code |\n|---|---|---|\n| home | who schedules | `Home` |\n"


def module(name: str, code: str = "") -> Module:
    """A module of the product."""
    return Module(name=name, tree=ast.parse(code))


def test_a_class_has_its_name_to_itself() -> None:
    """Over all packages, and each place is named; a private class and a nested one may be called anything."""
    modules = [
        module("pilotlight_core.model.a", "class Room: ...\nclass _Kept: ...\nclass Outer:\n    class Inner: ..."),
        module("pilotlight_gateway.b", "class Room: ...\nclass _Kept: ...\nclass Inner: ..."),
    ]

    assert [fault.where for fault in class_faults(modules)] == [
        "pilotlight_core.model.a.Room",
        "pilotlight_gateway.b.Room",
    ]


def test_a_type_alias_is_a_name_too() -> None:
    """But for those that declare a command's parameters; a constant is none."""
    modules = [
        module("pilotlight_core.a", "Rate = float\nLIMIT = 1"),
        module("pilotlight_gateway.b", "class Rate: ...\nLIMIT = 2"),
        module("pilotlight.cli.c", "Rate = str"),
    ]

    assert [fault.where for fault in class_faults(modules)] == ["pilotlight_core.a.Rate", "pilotlight_gateway.b.Rate"]


@pytest.mark.parametrize("name", ["pilotlight_gateway.jobs.port", "pilotlight_gateway.tabs", "pilotlight_core.utils"])
def test_a_module_says_of_what_it_is(name: str) -> None:
    """Neither what means nothing outside its room nor what only its author knows."""
    assert [fault.where for fault in module_faults([module(name)])] == [name]


def test_a_module_has_its_name_to_itself_in_its_package() -> None:
    """A module of an API's resource may be called like the one that the resource comes from."""
    modules = [
        module("pilotlight_gateway.jobs.policy"),
        module("pilotlight_gateway.limits.policy"),
        module("pilotlight_gateway.http.policy"),
        module("pilotlight_autoscaler.policy"),
    ]

    assert [fault.where for fault in module_faults(modules)] == [
        "pilotlight_gateway.jobs.policy", "pilotlight_gateway.limits.policy"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "code", ["def _tell(): ...", "def f():\n    def look_again(): ...", "async def hear() -> int: ..."]
)
def test_a_verb_that_says_too_little_is_refused_anywhere(code: str) -> None:
    """In private and nested functions too, whatever they return."""
    assert len(list(verb_faults(module("pilotlight_core.a", code)))) == 1


@pytest.mark.parametrize(
    "name",
    ["publish_breakers", "on_credit", "call_ended", "homes_changed", "node_gone", "passed_over", "main", "__exit__"],
)
def test_what_returns_nothing_says_what_it_does_or_what_happened(name: str) -> None:
    """A verb of the list, an event, or a name that is not ours to choose."""
    assert list(verb_faults(module("pilotlight_core.a", f"class A:\n    def {name}(self) -> None: ..."))) == []


def test_what_returns_nothing_and_says_no_verb_is_refused() -> None:
    """What returns something may be a noun; a property is one, and so is a command of the command line."""
    code = "class A:\n    def credit(self) -> {}: ..."

    assert len(list(verb_faults(module("pilotlight_core.a", code.format("None"))))) == 1
    assert list(verb_faults(module("pilotlight_core.a", code.format("float")))) == []
    assert (
        list(verb_faults(module("pilotlight_core.a", code.format("None").replace("def", "@property\n    def")))) == []
    )
    assert list(verb_faults(module("pilotlight.cli.a", code.format("None")))) == []


def test_no_verb_is_both_wanted_and_refused() -> None:
    """The lists do not contradict each other."""
    assert VERBS.isdisjoint(VAGUE_VERBS)


def test_a_concept_has_one_name() -> None:
    """Fields, instance attributes and parameters, also where they may be None; not what only has the same name."""
    code = (
        "class A:\n    call: str\n    def __init__(self, grant: int | None) -> None:\n        self.until: float = 0.0\n"
        "def f(call: Call, *, patience: float) -> None: ..."
    )

    assert [fault.where for fault in concept_faults(module("pilotlight_core.a", code))] == [
        "pilotlight_core.a.A.call", "pilotlight_core.a.A.__init__(grant)", "pilotlight_core.a.A.__init__.until",
        "pilotlight_core.a.f(patience)",
    ]  # fmt: skip
    assert list(concept_faults(module("pilotlight.verbs", code))) == []


def test_the_glossary_names_what_is_there() -> None:
    """A word has one row, and a row names something; headings and rules are passed over."""
    page = GLOSSARY + "| home | again | `Home` |\n| rim | of old | `Rim` |\n| vague | nothing | somewhere |\n"
    found = [str(fault) for fault in glossary_faults(page, [module("pilotlight_gateway.a", "class Home: ...")])]

    assert found == [
        "home: it has two rows in docs/design/words.md",
        "rim: its row in docs/design/words.md names `Rim`, which is not there",
        "vague: its row in docs/design/words.md names nothing in the code",
    ]


def test_an_exception_has_a_reason_and_does_not_outlive_it() -> None:
    """ALLOWED lets a name pass, and shrinks with the code."""
    modules = [module("pilotlight_gateway.a", "class Home: ..."), module("pilotlight_core.port")]

    assert faults(modules, GLOSSARY, {"pilotlight_core.port": "a port of the sea"}) == []
    assert faults(modules[:1], GLOSSARY, {"pilotlight_core.port": "it was one"}) == [
        "pilotlight_core.port: allowed, but nothing is wrong with it; remove it from ALLOWED"
    ]
