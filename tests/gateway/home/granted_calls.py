"""What a home grants, in short."""

from __future__ import annotations

from pilotlight_gateway.home.home import Home


def granted(home: Home, at: float = 0.0) -> list[tuple[str, str, int]]:
    grants = home.grants(at)
    home.check_integrity()
    return [(grant.call_id, grant.container, grant.grant_number) for grant in grants]
