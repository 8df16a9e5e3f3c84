"""Exceptions as bounded text."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_runtime.guest.basics.remote_errors import MAX_MESSAGE, MAX_TRACEBACK, BadArguments, remote_error


class Trap(Exception):
    """Its text raises."""

    def __str__(self) -> str:
        raise SystemExit


def caught(error: BaseException) -> BaseException:
    """The error after it has been raised."""
    with pytest.raises(type(error)) as info:
        raise error
    return info.value


def test_an_error_has_type_message_and_traceback() -> None:
    """Builtin types go by their name."""
    told = remote_error(caught(ValueError("the reason")))

    assert (told.type, told.message) == ("ValueError", "the reason")
    assert told.traceback.startswith("Traceback (most recent call last)")
    assert told.traceback.endswith("ValueError: the reason\n")


def test_own_types_go_by_their_module() -> None:
    """So that two libraries' errors of one name can be told apart; and an error whose text raises is still told."""
    told = remote_error(caught(Trap()))

    assert told.type.endswith("test_remote_errors.Trap")
    assert "__str__ raised SystemExit" in told.message
    assert told.traceback


def test_text_is_bounded() -> None:
    """Head and tail remain."""
    told = remote_error(caught(ValueError("a" + "x" * 10**6 + "z")))

    assert len(told.message) < MAX_MESSAGE + 100
    assert told.message.startswith("ax")
    assert told.message.endswith("xz")
    assert len(told.traceback) < MAX_TRACEBACK + 100


def test_text_can_travel() -> None:
    """Half a surrogate is no reason to lose an error."""
    assert remote_error(ValueError("\ud800")).message == "?"


def test_causes_are_told() -> None:
    """What an exception was raised from belongs to its traceback."""
    error = ValueError("second")
    error.__cause__ = KeyError("first")

    assert "KeyError: 'first'" in remote_error(error).traceback


def test_refused_arguments_have_no_traceback() -> None:
    """The message names the parameter: there is nothing of the tenant's code to show."""
    assert remote_error(caught(BadArguments("x: missing"))) == RemoteError(type="BadInput", message="x: missing")
