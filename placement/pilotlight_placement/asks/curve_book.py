"""The curves of each version: its own, its declared ones, and those of the previous version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pilotlight_core.model.api.curve_api import CurvesRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_placement.asks.ask import declared_points
from pilotlight_placement.asks.curves import Curves, Points, ranked

MAX_VERSIONS = 20_000


class CurveRegistry(Protocol):
    def curves(self, version_id: str) -> CurvesRecord | None: ...
    def app_nowait(self, tenant: str, app: str) -> AppRecord | None: ...


class CurveBook:
    """Curves by version: the same object until there is new data, so that asks stay equal."""

    def __init__(self, registry: CurveRegistry) -> None:
        self._registry = registry
        self._known: dict[str, tuple[CurvesRecord | None, CurvesRecord | None, Curves | None]] = {}

    def of(self, version: VersionRecord) -> Curves | None:
        """The version's curves; None if there are none."""
        own, earlier = self._registry.curves(version.id), self._earlier(version)
        known = self._known.get(version.id)
        if known is not None and known[0] is own and known[1] is earlier:
            return known[2]
        if len(self._known) >= MAX_VERSIONS:
            self._known.clear()
        points = points_of(version, own, earlier)
        before = known[2] if known is not None else None
        same = before is not None and before.points == points
        made = before if same else Curves(points) if points else None
        self._known[version.id] = (own, earlier, made)
        return made

    def of_all(self, versions: Mapping[str, VersionRecord]) -> dict[str, Curves]:
        return {name: made for name, version in versions.items() if (made := self.of(version)) is not None}

    def _earlier(self, version: VersionRecord) -> CurvesRecord | None:
        app = self._registry.app_nowait(version.tenant, version.app)
        earlier = app.version_at(version.function, version.number - 1) if app is not None else None
        return self._registry.curves(earlier) if earlier is not None else None


def points_of(version: VersionRecord, own: CurvesRecord | None, earlier: CurvesRecord | None) -> Points:
    return ranked(
        declared_points(version.spec.placing.measured),
        own.curves if own is not None else (),
        earlier.curves if earlier is not None else (),
        version.created_at,
    )
