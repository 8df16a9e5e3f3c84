"""Learnt curves, which are stored beside their versions."""

from __future__ import annotations

import contextlib

from pilotlight_autoscaler.observations.curve_learning import CurveLearner
from pilotlight_core.bus import BusError
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.api.curve_api import Curve, CurvesRecord
from pilotlight_core.model.errors import Conflict


class CurveStore:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def write(self, learner: CurveLearner, at: float, wall: float) -> None:
        """Store what has been learnt and not been stored for a while; what cannot be stored now is learnt again.

        `at` is on the learner's clock, `wall` the same in unix seconds.
        """
        for version, curves in learner.due(at, wall).items():
            record = self._registry.version(version)
            if record is None or record.spec.placing.slice:
                continue  # a trial's calls are measured by its caller

            def change(
                known: CurvesRecord | None, version: str = version, curves: tuple[Curve, ...] = curves
            ) -> CurvesRecord:
                return (known or CurvesRecord(version=version)).with_curves(curves)

            with contextlib.suppress(BusError, Conflict):
                await self._registry.change_curves(version, change)
