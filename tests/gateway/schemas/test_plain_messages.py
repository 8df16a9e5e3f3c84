"""Refusals in words."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from pilotlight_core.model.api import call_api, tenancy_api, webhook_api
from pilotlight_core.model.ids import FUNCTION_PATTERN, REF_PATTERN
from pilotlight_core.model.limits import Limits
from pilotlight_gateway.schemas.plain_messages import plain, unknown_field


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (tenancy_api.Name, "expected a name of letters, digits, - and _"),
        (call_api.Scope, "expected one of invoke, deploy, read, admin, operator"),
        (
            webhook_api.EventName,
            "expected one of job.succeeded, job.failed, job.cancelled, job.expired, budget.threshold",
        ),
        (webhook_api.Label, "expected one line of text"),
        (webhook_api.Url, "expected a URL"),
        (Annotated[str, Meta(pattern=REF_PATTERN)], "expected a function, such as app.function, app.function@v7"),
        (Annotated[str, Meta(pattern=FUNCTION_PATTERN)], "expected a function, such as app.function or"),
        (Annotated[str, Meta(pattern="^[0-9]+$")], "expected text that matches ^[0-9]+"),
        (int, "expected a whole number, got text"),
        (float | None, "expected a number, got text"),
        (bool | None, "expected true or false, got text"),
        (list[int] | dict[str, int], "expected an object or a list, got text"),
        (None, "expected null, got text"),
        (Annotated[str, Meta(min_length=20)], "expected text of length >= 20"),
    ],
)
def test_nobody_has_to_read_a_regular_expression(kind: Any, said: str) -> None:
    """Where we know what a pattern means."""
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert("no\nname !", kind)

    assert plain(str(refused.value)).startswith(said)


def test_bounds_are_told_as_they_are() -> None:
    """With what they bound."""
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert({"concurrency": 0}, Limits)

    assert plain(str(refused.value).partition(" - at")[0]) == "expected a whole number >= 1"


@pytest.mark.parametrize(
    ("place", "kind", "said"),
    [
        ("brust", Limits, "unknown field. Did you mean burst?"),
        ("limits.requests_per_sec", tenancy_api.TierRequest, "unknown field. Did you mean requests_per_s?"),
        ("colour", Limits, "unknown field; there are requests_per_s, burst, "),
        ("limits.colour.x", tenancy_api.TierRequest, "unknown field"),
        ("brust", None, "unknown field"),
    ],
)
def test_a_misspelt_field_is_answered_with_the_one_that_was_meant(place: str, kind: Any, said: str) -> None:
    """Also inside another one; where none looks like it, with those there are."""
    assert unknown_field(place, kind).startswith(said)
