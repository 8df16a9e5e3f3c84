"""Every code of the table becomes a problem document that all kinds of clients understand."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import CODES, BadInput, FunctionRaised, TooMuch, Unavailable, error_from_code
from pilotlight_gateway.http.protocol.problem_answers import LONGEST_DETAIL, problem_of, retry_after
from tests.gateway.world import World, function


@pytest.mark.parametrize("code", sorted(CODES))
async def test_every_code_answers_a_call_as_the_table_says(world: World, code: str) -> None:
    """Status, title, advice, retry headers and the error object, through the whole application."""
    world.deploy(function())
    world.calls.error = error_from_code(code, "It happened.")
    meaning = CODES[code]

    async with world.client() as client:
        answer = await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": "x"}})

    document = answer.json()
    assert answer.status_code == document["status"] == meaning.status
    assert answer.headers["content-type"] == "application/problem+json"
    assert (document["code"], document["title"], document["advice"]) == (code, meaning.title, meaning.advice)
    assert document["request_id"] == answer.headers["x-request-id"]
    assert document["error"].keys() == {"message", "type", "param", "code"}
    assert answer.headers["x-should-retry"] == str(meaning.retry).lower()
    assert ("retry-after" in answer.headers) == (meaning.retry and meaning.status in (429, 503))
    assert ("www-authenticate" in answer.headers) == (meaning.status == 401)
    assert answer.headers["pilotlight-call-id"].startswith("call_")


def test_the_time_to_wait_is_told_in_both_units_and_never_too_long() -> None:
    """Seconds are whole, milliseconds are exact, and more than two minutes would mean "give up"."""
    headers = dict(problem_of(TooMuch("Slow down.", retry_after=1.234), "req", lambda: 0.0).headers)

    assert (headers[b"retry-after"], headers[b"retry-after-ms"]) == (b"2", b"1234")
    assert retry_after(Unavailable(retry_after=1e6)) == 120.0
    assert retry_after(TooMuch(retry_after=1e6)) == 1e6  # what a rate gives back is certain
    assert retry_after(TooMuch(retry_after=-1.0)) == 0.0
    assert retry_after(TooMuch()) == 1.0
    assert retry_after(BadInput()) is None


@pytest.mark.parametrize(
    ("wait", "seconds", "ms"), [(1.0, b"1", b"1100"), (1.95, b"2", b"2145"), (30.0, b"33", b"33000"), (0.0, b"0", b"0")]
)
def test_jitter_is_upward_and_at_most_a_tenth(wait: float, seconds: bytes, ms: bytes) -> None:
    """Nobody is told to come too early, and whole seconds are not made two of one."""
    problem = problem_of(TooMuch(retry_after=wait), "req", lambda: 1.0)
    headers = dict(problem.headers)

    assert (headers[b"retry-after"], headers[b"retry-after-ms"]) == (seconds, ms)
    assert problem.document["retry_after"] == pytest.approx(wait * 1.1)


def test_what_an_error_carries_is_in_the_document() -> None:
    """Fields and tracebacks are there; they cannot replace what the table says."""
    error = FunctionRaised("ValueError: no", traceback="Traceback…", field="x", status=200, advice="none", odd={1, 2})

    document = msgspec.json.decode(problem_of(error, "req").encode())

    assert document["traceback"] == "Traceback…"
    assert (document["status"], document["error"]["param"]) == (500, "x")
    assert document["advice"] == CODES["function_raised"].advice


def test_a_long_detail_is_cut() -> None:
    """A function may raise with a megabyte of text."""
    document = problem_of(FunctionRaised("x" * 10**6), "req").document

    assert len(document["detail"]) == LONGEST_DETAIL + 1
