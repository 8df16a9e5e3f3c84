"""`python -m pilotlight_autoscaler`: the controller process."""

from __future__ import annotations

from pilotlight_core.lean_libraries import structlog  # isort: skip # before what would import it whole

import asyncio
import signal
import sys

import uvloop

from pilotlight_autoscaler.blank_keeper import BlankKeeper
from pilotlight_autoscaler.controller import Controller
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.policy.move_budget import MoveBudget
from pilotlight_autoscaler.pools.providers.pool_opener import pool_opener
from pilotlight_autoscaler.repacking import Repacking
from pilotlight_core.bus import Bus, Lease, bus_users, connect
from pilotlight_core.host import config, telemetry
from pilotlight_core.host.compiled import IS_COMPILED
from pilotlight_core.host.events.bus_event_log import BusEventLog
from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.host.gc_tuning import freeze, freeze_again
from pilotlight_core.host.metrics import CannotListen, measured_process
from pilotlight_core.host.price_records import follow_prices
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import load_tiers
from pilotlight_core.model.price_book import PriceBook, load_prices
from pilotlight_placement.asks.options import Prices

log = structlog.get_logger()


async def serve(settings: config.ControllerSettings) -> int:
    """Run until SIGTERM or SIGINT; exit code 1 if the bus is closed for good (the supervisor restarts the process).

    Raises:
        BadInput: the tiers file or the price file is wrong. CannotListen: the port for metrics is in use.
    """
    stop, book = asyncio.Event(), load_prices(settings.prices)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with (
        connect(
            settings.nats_url,
            name="controller",
            inbox=bus_users.controller().inbox,
            ca_file=settings.ca_file,
            makes_streams=False,
        ) as bus,
        Registry(bus, load_tiers(settings.tiers)) as registry,
    ):
        bus.spawn(follow_prices(registry, book))
        lease = bus.lease("controller", settings.name or "controller")
        events = BusEventLog(bus, region=settings.region)
        controller = _controller(settings, bus, registry, lease, book, events)
        keeper = BlankKeeper(bus, registry, lease, controller.world, region=settings.region)
        async with (
            measured_process(settings, bus, controller.collect_metrics, events.collect),
            events.running(),
            controller.running(),
            keeper.running(),
        ):
            freeze()
            log.info("ready", region=settings.region, compiled=IS_COMPILED)
            waits = {asyncio.ensure_future(stop.wait()), asyncio.ensure_future(bus.closed.wait())}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
            return 0 if stop.is_set() else 1


def _controller(
    settings: config.ControllerSettings, bus: Bus, registry: Registry, lease: Lease, book: PriceBook, events: EventLog
) -> Controller:
    return Controller(
        bus,
        registry,
        lease,
        World(moves=MoveBudget(per_hour=settings.moves_per_hour), prices=Prices(book=book)),
        region=settings.region,
        repacking=Repacking(every_s=settings.repack_every, min_residency_s=settings.min_residency),
        stop_grace_s=settings.stop_grace,
        advises=settings.advise,
        zone=settings.zone,
        open_pool=pool_opener(settings.state_dir),
        on_settled=freeze_again,
        events=events,
    )


def main() -> None:
    settings = config.controller(sys.argv[1:])
    telemetry.setup("controller")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code = runner.run(serve(settings))
        sys.exit(code)
    except (BadInput, CannotListen) as error:
        log.error("the controller cannot run", error=error.detail if isinstance(error, BadInput) else str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
