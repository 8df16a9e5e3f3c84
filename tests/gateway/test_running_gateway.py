"""How a gateway ends: notice first, then the calls inside, then connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest
from uvicorn import Config

from pilotlight_core.host.registry import Registry
from pilotlight_gateway.cluster.identity_guard import NameTaken
from pilotlight_gateway.front_wiring import GrpcAddress, GrpcFront
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.quiet_server import QuietServer
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.principal_watch import PrincipalWatch
from pilotlight_gateway.running_gateway import Gateway

if TYPE_CHECKING:
    from pilotlight_gateway.front_wiring import FrontParts
    from pilotlight_gateway.http.inference.model_endpoints import TensorModelServices


class Call:
    """Inside until it is cancelled."""

    def __init__(self, gate: DrainGate) -> None:
        self._gate = gate
        gate.enter(self)

    def cancel(self) -> None:
        self._gate.leave(self)


def gateway() -> Gateway:
    async def nothing(*_: Any) -> None: ...

    return Gateway(
        gate=DrainGate(),
        jobs=JobService(),
        registry=cast("Registry", None),
        watch=cast("PrincipalWatch", None),
        public=QuietServer(Config(nothing)),
        internal=QuietServer(Config(nothing)),
        grpc=GrpcFront(cast("FrontParts", None), cast("TensorModelServices", None), GrpcAddress("", 0)),
        superseded=asyncio.get_running_loop().create_future(),
    )


async def test_calls_are_taken_while_notice_is_given(anyio_backend: str) -> None:
    """It is not ready any more, and refuses nothing before the notice is over."""
    one, lost = gateway(), asyncio.Event()
    notice = asyncio.ensure_future(one.give_notice(3_600.0, lost))
    await asyncio.sleep(0)
    assert one.gate.leaving

    call = Call(one.gate)

    assert not notice.done()
    call.cancel()
    lost.set()
    await notice


@pytest.mark.parametrize("why", ["the bus is lost", "another has its name"])
async def test_no_notice_is_given_where_nothing_can_be_answered(anyio_backend: str, why: str) -> None:
    """It ends at once, to be started again."""
    one, lost = gateway(), asyncio.Event()
    notice = asyncio.ensure_future(one.give_notice(3_600.0, lost))
    if why == "the bus is lost":
        lost.set()
    else:
        one.superseded.set_result(NameTaken("gateway"))
    await notice


async def test_calls_that_take_too_long_are_ended(anyio_backend: str) -> None:
    """Then both servers stop."""
    one = gateway()
    Call(one.gate)

    await one.shut_down(0.0)

    assert len(one.gate) == 0
    assert (one.public.should_exit, one.internal.should_exit) == (True, True)
