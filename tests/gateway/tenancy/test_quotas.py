"""The refusal of what a tenant may not keep."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import QuotaExceeded
from pilotlight_gateway.tenancy.quotas import check_quota


def test_it_names_the_limit_and_says_how_to_make_room() -> None:
    """Exactly as many as allowed pass; without a limit all do."""
    check_quota("acme", "apps", 3, 3, "apps", "delete one")
    check_quota("acme", "apps", None, 10**9, "apps", "delete one")

    with pytest.raises(QuotaExceeded) as refused:
        check_quota("acme", "apps", 3, 4, "apps", "delete one")

    assert refused.value.detail == "acme may have 3 apps (the limit apps), and this would make 4: delete one."
    assert refused.value.wire_code == "quota_exceeded"
    (reached,) = refused.value.more["limits"]
    assert (reached.limit, reached.tenant, reached.allowed, reached.current) == ("apps", "acme", 3, 4)
