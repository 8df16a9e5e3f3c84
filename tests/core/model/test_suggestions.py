"""A misspelt name gets the most similar known one as a suggestion, and nothing far-fetched."""

from __future__ import annotations

import pytest

from pilotlight_core.model.suggestions import NAMES_AT_MOST, as_sentence, did_you_mean, nearest, nearest_function

FUNCTIONS = ("calls.echo", "calls.naps", "Shop.Charge", "zoo:llm.chat")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("requests_per_sec", "requests_per_s"),
        ("CONCURRENCY", "concurrency"),
        ("brust", "burst"),
        ("colour", None),
        ("", None),
    ],
)
def test_a_name_is_suggested_that_looks_like_it(word: str, meant: str | None) -> None:
    """Case does not matter; what looks like nothing gets no suggestion."""
    assert nearest(word, ("requests_per_s", "burst", "concurrency")) == meant


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("calls.ecko", "calls.echo"),
        ("cals.echo", "calls.echo"),
        ("call.nap", "calls.naps"),
        ("shop.charge", "Shop.Charge"),
        ("zoo:lm.chat", "zoo:llm.chat"),
        ("calls.banana", None),
        ("elsewhere.naps", "calls.naps"),
        ("naps", "calls.naps"),
        ("banana", None),
    ],
)
def test_a_function_is_suggested_by_its_app_and_by_its_name(word: str, meant: str | None) -> None:
    """Sharing an app is no likeness: the function itself must look like the one that was written."""
    assert nearest_function(word, FUNCTIONS) == meant


def test_a_name_that_two_apps_have_is_nobodys_guess() -> None:
    """An app that looks like none is not guessed by its function if several have one."""
    assert nearest_function("naps", ("calls.naps", "shop.naps")) is None


def test_no_more_names_are_compared_than_is_cheap() -> None:
    """What is beyond the bound is as if it were not there."""
    many = [f"x{number:05}" for number in range(NAMES_AT_MOST)]

    assert nearest("banana", [*many, "bananas"]) is None
    assert nearest_function("shop.banana", [*(f"{name}.f" for name in many), "shop.bananas"]) is None


def test_the_sentence_is_ready_to_be_added() -> None:
    """Without a suggestion it is empty."""
    assert did_you_mean("calls.echo") == " Did you mean calls.echo?"
    assert did_you_mean(None) == ""


def test_a_question_ends_a_sentence() -> None:
    """No full stop behind it."""
    assert (as_sentence("there is none"), as_sentence("did you mean H100?")) == ("there is none.", "did you mean H100?")
