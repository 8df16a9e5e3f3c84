"""Refusals in words."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from pilotlight_core.model import api, api_tenancy, webhooks
from pilotlight_core.model.ids import FUNCTION_PATTERN, REF_PATTERN
from pilotlight_gateway.plain_shapes import plain


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (api_tenancy.Name, "expected a name of letters, digits, - and _"),
        (api.Scope, "expected one of invoke, deploy, read, admin, operator"),
        (webhooks.JobEvent, "expected one of job.succeeded, job.failed, job.cancelled, job.expired"),
        (webhooks.Label, "expected one line of text"),
        (webhooks.Url, "expected a URL"),
        (Annotated[str, Meta(pattern=REF_PATTERN)], "expected a function, such as app.function, app.function@v7"),
        (Annotated[str, Meta(pattern=FUNCTION_PATTERN)], "expected a function, such as app.function or"),
        (Annotated[str, Meta(pattern="^[0-9]+$")], "expected text that matches ^[0-9]+"),
        (int, "Expected int, got str"),
    ],
)
def test_nobody_has_to_read_a_regular_expression(kind: Any, said: str) -> None:
    """Where we know what a pattern means."""
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert("no\nname !", kind)

    assert plain(str(refused.value)).startswith(said)
