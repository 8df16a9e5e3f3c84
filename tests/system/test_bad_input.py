"""Every row of docs/bad-input.md, sent to a running platform: status, code, document, SDK exception, log line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import pilotlight
from pilotlight.client.transport.problems import error_of
from pilotlight_core.model.errors import CODES
from tests.system.support.bad_cases import CASES, Bench, Case
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "bad-input.md"
KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table."""

    case: str
    status: int
    code: str
    sdk: str
    log: str


def rows() -> Iterator[Row]:
    """The rows of the page."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[1].isdecimal():
            yield Row(case=cells[0], status=int(cells[1]), code=cells[2], sdk=cells[3], log=cells[4])


@pytest.fixture(scope="module")
def bench(platform: Platform, client: pilotlight.Client, stranger_key: str) -> Iterator[Bench]:
    with deployed(platform, APPS / "bad" / "app.py"), deployed(platform, APPS / "broken" / "app.py"):
        yield Bench(platform=platform, client=client, stranger_key=stranger_key)


def test_every_row_has_a_case_and_every_case_a_row() -> None:
    """The page is the list of cases, neither more nor less."""
    assert [row.case for row in rows()] == list(CASES)


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row.case)
def test_what_is_wrong_is_told(bench: Bench, row: Row) -> None:
    """The caller learns what was wrong, whichever way it calls; the author finds it in the log."""
    case = CASES[row.case]
    answer = case.http(bench)
    assert answer.status_code == row.status, answer.text
    if row.status >= 400:
        check_document(answer, row.code, case)
        check_error(bench, case, row, answer)
    else:
        assert not row.sdk
    if row.log:
        app, function = case.function.split(".")
        wait_until(
            lambda: any(row.log in line["text"] for line in bench.platform.logs(app, function)),
            f"{row.log!r} is logged",
        )


def test_the_platform_is_none_the_worse(bench: Bench) -> None:
    """After all that, a good call is answered, and nothing of the others is left."""
    assert bench.platform.output("bad.typed", count=3) == "3 x none"
    wait_until(lambda: not bench.platform.containers(), "all containers go")


def check_document(answer: httpx.Response, code: str, case: Case) -> None:
    """The problem document and the headers say the same, and all that there is to say."""
    told, meaning = answer.json(), CODES[code]
    assert answer.headers["content-type"] == "application/problem+json"
    assert told["code"] == code, told
    assert told["type"] == f"urn:pilotlight:error:{code}"
    assert (told["status"], told["title"], told["advice"]) == (meaning.status, meaning.title, meaning.advice)
    assert told["detail"]
    assert told["request_id"] == answer.headers["x-request-id"]
    assert told.get("field") == case.field
    kind = KINDS.get(meaning.status, "invalid_request_error" if meaning.status < 500 else "server_error")
    assert told["error"] == {"message": told["detail"], "type": kind, "param": case.field, "code": code}
    assert answer.headers["x-should-retry"] == str(meaning.retry).lower()
    check_retry_after(answer, told)


def check_retry_after(answer: httpx.Response, told: dict[str, Any]) -> None:
    """Whoever should come again is told when."""
    assert ("retry-after" in answer.headers) is (answer.status_code in (429, 503))
    if "retry-after" in answer.headers:
        assert 0 < int(answer.headers["retry-after"]) <= 120
        assert 0 < told["retry_after"] <= 1.1 * int(answer.headers["retry-after"])  # with jitter, at most a tenth


def check_error(bench: Bench, case: Case, row: Row, answer: httpx.Response) -> None:
    """The SDK raises the class that the table names, with the same code."""
    if case.sdk is None:
        error = error_of(answer.status_code, answer.content, retry_after=answer.headers.get("retry-after"))
    else:
        error = error_from_sdk(bench, case)
    assert isinstance(error, getattr(pilotlight, row.sdk)), repr(error)
    assert error.wire_code == row.code


def error_from_sdk(bench: Bench, case: Case) -> pilotlight.PilotlightError:
    """What the SDK raises."""
    assert case.sdk is not None
    with pytest.raises(pilotlight.PilotlightError) as caught:
        case.sdk(bench)
    return caught.value
