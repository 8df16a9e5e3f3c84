"""A live call whose caller keeps what it hears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.prepared_call import PreparedCall
from tests.builders.specs import function_spec, method, version_record


class QuietCall(InFlightCall):
    """What was said is in `said`."""

    def __init__(self, call: PreparedCall, origin: Origin) -> None:
        super().__init__(call, shard_of(call.function), origin)
        self.said: list[Any] = []
        self.takes = False
        """Whether it sends chunks on at once."""

    def report_stage(self, name: str, ms: float, detail: Mapping[str, object]) -> None:
        self.said.append((name, dict(detail)) if detail else name)

    def relay_chunks(self, seq: int, data: tuple[bytes, ...]) -> None:
        self.said.append((seq, data))

    def take_chunks(self, seq: int, data: tuple[bytes, ...]) -> bool:
        if self.takes:
            self.said.append(("taken", seq, len(data)))
        return self.takes

    def finish(self, result: CallResult) -> None:
        self.said.append(result)

    def fail(self, error: PilotlightError) -> None:
        self.error = error
        self.said.append(error)


def quiet_call(name: str = "a", *, at: float = 100.0, within_s: float = 60.0, **more: Any) -> QuietCall:
    """A call of the tenant acme to a function of its own, at the gateway gw1."""
    version = version_record(function_spec("f", method()), app="a")
    options: dict[str, Any] = {"client_id": None, "input": b"", "stream": False} | more
    call = PreparedCall(
        call_id=name, tenant="acme", version=version, method=version.spec.methods[0], priority=Priority.STANDARD,
        deadline_at=at + within_s, arrived_at=at, **options,
    )  # fmt: skip
    return QuietCall(call, Origin(call, "gw1", at))
