"""`python -m pilotlight_gateway`: one gateway process."""

from __future__ import annotations

from pilotlight_core.lean_libraries import structlog  # isort: skip # before what would import it whole

import asyncio
from typing import NoReturn

import uvloop

from pilotlight_core.bus import BusDown, BusIncomplete
from pilotlight_core.host import telemetry
from pilotlight_core.host.blobs import NoBlobStore
from pilotlight_core.host.config import load
from pilotlight_core.host.foundations import WrongFoundation
from pilotlight_core.host.signing import NoKey
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.cluster.identity_guard import NameTaken
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.serving import BusLost, serve
from pilotlight_gateway.settings import ServeSettings

EXPECTED = (
    BusDown, BusIncomplete, BusLost, NameTaken, BadInput, LedgerRefused, NoBlobStore, NoKey, WrongFoundation, OSError
)  # fmt: skip
"""Errors that end it with a line in the log."""


def main() -> None:
    """Run a gateway; exits with 0 after a signal, 1 if it must be restarted."""
    settings = load(ServeSettings, "one gateway: the HTTP API and scheduling")
    telemetry.setup("gateway")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings))
    except EXPECTED as error:
        _end(error)
    except BaseExceptionGroup as group:  # of the task group in which a part of it began
        if (expected := group.subgroup(EXPECTED)) is None:
            raise
        _end(_first(expected))


def _end(error: BaseException) -> NoReturn:
    text = error.detail if isinstance(error, BadInput) else str(error)  # without what callers are advised
    structlog.get_logger(__name__).error("the gateway cannot run on", error=text)
    raise SystemExit(1) from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


if __name__ == "__main__":
    main()
