"""The status of each error."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import CODES, PilotlightError
from pilotlight_gateway.grpc_front.status_codes import status_of


@pytest.mark.parametrize("code", CODES)
def test_every_error_has_a_status(code: str) -> None:
    """None is unknown, and what may not be sent again is not called unavailable."""
    status = status_of(PilotlightError(code=code))
    assert status.name not in ("UNKNOWN", "OK")
    if not CODES[code].retry:
        assert status.name != "UNAVAILABLE"
