"""`python -m pilotlight_gateway`: one gateway process."""

from __future__ import annotations

import asyncio

import structlog
import uvloop

from pilotlight_core.host import telemetry
from pilotlight_core.host.bus import BusDown
from pilotlight_core.host.config import load
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.serving import BusLost, serve
from pilotlight_gateway.settings import ServeSettings


def main() -> None:
    """Run a gateway; ends with 0 when it was told to, 1 when it must be started anew."""
    settings = load(ServeSettings, "one gateway: the HTTP API and scheduling")
    telemetry.setup("gateway")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings))
    except (BusDown, BusLost, BadInput, OSError) as error:
        structlog.get_logger(__name__).error("the gateway cannot run on", error=str(error))
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
