"""Calls that answer, that fail, and that never come back."""

from __future__ import annotations

import threading

import pytest

from pilotlight_supervisor.doctor.bounded_call import call_bounded


def test_what_comes_is_given_back() -> None:
    """Also what was raised, and what counts as nothing."""
    assert call_bounded(lambda: 7, 60.0) == 7
    assert call_bounded(lambda: None, 60.0) is None
    with pytest.raises(ZeroDivisionError):
        call_bounded(lambda: 1 // 0, 60.0)


def test_what_never_comes_is_left_behind() -> None:
    """In a thread that keeps no process from its end."""
    goes_on = threading.Event()
    with pytest.raises(OSError, match=r"nothing came within 0\.01 s"):
        call_bounded(goes_on.wait, 0.01)
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "doctor call")
    goes_on.set()
