"""What is said of a kept call."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.tracing.kept_call import KeptAttempt, KeptWhy
from pilotlight_gateway.traces.call_sentences import longest_part, sentences_of, text_of
from tests.builders.kept import STAGES, kept_call


def said(is_owner: bool = True, **more: Any) -> str:
    return " ".join(sentences_of(kept_call(**more), is_owner=is_owner))


def test_a_cold_call_names_the_start_and_its_steps() -> None:
    """The longest part first, with what it waited for."""
    text = said()
    assert text.startswith("shop.rank@v3 took 1.00 s and ended well. It is kept since it took longer than 300 ms.")
    assert "What took longest was waiting for a container to start: 700 ms, 70% of it." in text
    assert "of its start enter took 400 ms, fetch took 300 ms, import took 200 ms" in text
    assert "min_containers keeps one ready" in text
    assert longest_part(kept_call()) == ("start", 700.0)


def test_a_call_that_queued_says_behind_how_many() -> None:
    """To the function's owner: how much others have in the queue is not its callers' to know."""
    stages = STAGES | {"queue": 700.0, "start": 40.0}
    attempt = KeptAttempt(
        outcome="ok", ahead=12, queue=700.0, start=40.0, transport=20.0, batch_wait=30.0, execute=150.0
    )
    assert "behind 12 calls that had come before" in said(stages=stages, attempts=(attempt,))
    assert "behind" not in said(is_owner=False, stages=stages, attempts=(attempt,))


def test_a_refused_call_says_why_and_what_to_do() -> None:
    text = said(
        kept=KeptWhy.ERROR, code="rate_limited", total_ms=0.4, stages={}, attempts=(), cold_start=None, ref="",
        function="", detail="acme makes 70 requests a second, which is its limit.", limits=("requests_per_s",),
        retry_after=0.25,
    )  # fmt: skip
    assert text == (
        "The request was refused with rate_limited after 0.4 ms. acme makes 70 requests a second, which is its limit. "
        "It ran into the limit of requests_per_s. After 250 ms another try might have succeeded. "
        "What to do: Wait for Retry-After, then send it again."
    )


def test_each_attempt_is_told_and_to_its_owner_why_it_ended() -> None:
    tried = (
        KeptAttempt(container="c1", outcome="no_slot", started=False, queue=5.0, transport=1.0),
        KeptAttempt(container="c2", outcome="died", reason="memory limit of 2.0 GiB", execute=100.0),
        *kept_call().attempts,
    )
    text = said(attempts=tried)
    assert "Attempt 1 in c1 never began: the container had no room left, and ended after 6.0 ms." in text
    assert "Attempt 2 in c2 ended with died (memory limit of 2.0 GiB) after 100 ms." in text
    assert "Attempt 3 in c1 ended well after 940 ms." in text
    others = said(is_owner=False, attempts=tried)
    assert "Attempt 2 ended with died after 100 ms." in others
    assert "c2" not in others
    assert "memory" not in others


@pytest.mark.parametrize(
    ("more", "has"),
    [
        ({"stages": {"batch_wait": 900.0, "execute": 100.0}, "attempts": ()}, "Its batch had 4 calls."),
        ({"stages": {"execute": 950.0}, "attempts": ()}, "It ran in a batch of 4."),
        ({"stages": {"transport": 950.0}, "attempts": ()}, "Large inputs and answers make that longer."),
        ({"stages": {"gateway": 950.0}, "attempts": ()}, "reading and checking the request"),
        ({"kept": KeptWhy.ASKED}, "its caller's traceparent asked"),
        ({"kept": KeptWhy.SAMPLED}, "one of those that are sampled"),
        ({"parent": "call_p"}, "It was made by the call call_p."),
        ({"code": "breaker_open", "detail": "It failed 5 times."}, "was refused with breaker_open"),
        ({"code": "function_raised"}, "failed with function_raised after 1.00 s."),
        ({"code": "of a later release"}, "failed with of a later release"),
        (
            {"attempts": (KeptAttempt(container="c1", outcome="lost", reason="silent"),), "code": "container_died"},
            "was lost with its container or node (silent)",
        ),
    ],
)
def test_what_took_long_is_explained(more: dict[str, Any], has: str) -> None:
    assert has in said(**more)


def test_times_are_written_as_people_read_them() -> None:
    assert [text_of(ms) for ms in (0.04, 9.96, 12.3, 1_234.0, 90_000.0)] == [
        "0.0 ms",
        "10.0 ms",
        "12 ms",
        "1.23 s",
        "1.5 min",
    ]
