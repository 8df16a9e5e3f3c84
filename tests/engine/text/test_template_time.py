"""The time of a template."""

from __future__ import annotations

import threading

import pytest

from pilotlight_engine.text import template_time
from pilotlight_engine.text.template_time import TemplateRefusal, allow_time, check_time


def run_until_over() -> None:
    while True:
        check_time()


def test_it_is_over_after_its_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_time, "MOST_S", 0.001)
    allow_time()
    with pytest.raises(TemplateRefusal, match=r"takes longer than 0\.001 s"):
        run_until_over()
    monkeypatch.undo()
    allow_time()
    check_time()


def test_each_thread_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without any is not stopped."""
    monkeypatch.setattr(template_time, "MOST_S", -1.0)
    allow_time()
    failed: list[Exception] = []

    def other() -> None:
        try:
            check_time()
        except TemplateRefusal as error:
            failed.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert failed == []
    with pytest.raises(TemplateRefusal):
        check_time()
    monkeypatch.undo()
    allow_time()
