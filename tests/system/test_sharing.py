"""A function of one tenant called by another: the caller pays, the owner has the logs, the caller a code and an id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.system.support.platform import Platform, make_tenant
from tests.waiting import wait_until

SOURCE = """\
import pilotlight

app = pilotlight.App("lent")


@app.gpu_function(gpu="cpu", memory="256MiB", scaledown_window=1)
def half(number: int) -> float:
    if number < 0:
        raise ValueError("the owner's own words")
    return number / 2
"""
PATH = "/v1/functions/default:lent.half/calls"


@pytest.fixture(scope="module")
def borrower(platform: Platform) -> Iterator[httpx.Client]:
    """A client of a tenant of its own."""
    with platform.as_holder_of(make_tenant(platform, "borrower")) as client:
        yield client


@pytest.fixture
def lent(platform: Platform, tmp_path: Path) -> None:
    """Deployed by the platform's first tenant, and shared with the second as a person would."""
    (tmp_path / "app.py").write_text(SOURCE)
    platform.deploy(tmp_path / "app.py")
    platform.cli("app", "share", "lent", "borrower", "half")


@pytest.mark.usefixtures("lent")
def test_a_lent_function_is_paid_by_its_caller_and_explains_itself_to_its_owner(
    platform: Platform, borrower: httpx.Client
) -> None:
    """Output and price to the caller; the reason of a failure to the owner's log, under the call that failed."""
    assert [shared["ref"] for shared in borrower.get("/v1/shared").json()["shared"]] == ["default:lent.half"]
    changes = json.loads(platform.cli("audit", "--json").stdout)["entries"]
    assert [(one["operation"], one["code"]) for one in changes][-2:] == [("deployApp", ""), ("shareApp", "")]
    answer = borrower.post(PATH, json={"input": {"number": 3}})
    assert answer.json()["output"] == 1.5

    failed = borrower.post(PATH, json={"input": {"number": -1}})
    assert (failed.status_code, failed.json()["code"]) == (500, "function_raised")
    assert "own words" not in failed.text
    call = failed.json()["call"]
    assert "own words" not in borrower.get(f"/v1/calls/{call}").text

    def reasons() -> list[str]:
        return [line["text"] for line in platform.logs("lent") if line["call"] == call and "own words" in line["text"]]

    wait_until(lambda: reasons(), "the owner's log has the reason")
    assert borrower.get("/v1/apps/lent/logs").status_code == 404

    def paid(http: httpx.Client) -> list[str]:
        lines = http.get("/v1/usage").json()["lines"]
        return [line["cost"] for line in lines if (line["app"], line["state"]) == ("lent", "busy") and line["calls"]]

    wait_until(lambda: paid(borrower), "the caller's usage has it")
    assert not paid(platform.http)


@pytest.mark.usefixtures("lent")
def test_what_is_no_longer_lent_is_gone(platform: Platform, borrower: httpx.Client) -> None:
    """As if it had never been there."""
    platform.cli("app", "unshare", "lent", "borrower")

    wait_until(lambda: borrower.post(PATH, json={"input": {"number": 3}}).status_code == 404, "it is gone")
    assert borrower.get("/v1/shared").json()["shared"] == []
