"""Which bindings are over: those whose containers no node reports. Pure: time is an argument (seconds).

A crash may leave a binding without a container, and a container that was stopped without an end of its binding: both
are found here, by every leader anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pilotlight_core.model.messages.bindings import Binding

MISSING_S = 3.0
"""A container that its node has not reported for so long (three reports) has ended."""
LOST_S = 3_600.0
"""A node may be silent for so long and come back with its containers."""


class EndedBindings:
    """Remembers since when containers are missing."""

    def __init__(self) -> None:
        self._missing: dict[str, float] = {}

    def due(self, bindings: Iterable[Binding], nodes: Collection[str], at: float) -> list[Binding]:
        """The bindings to end now, of those without a container; `nodes` are those heard."""
        ended, missing = [], {}
        for binding in bindings:
            since = missing[binding.container] = self._missing.get(binding.container, at)
            if at - since >= (MISSING_S if binding.node in nodes else LOST_S):
                ended.append(binding)
        self._missing = missing
        return ended
