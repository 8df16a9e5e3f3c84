"""Credits: an agent's reports of its containers' free slots, coalesced so that a busy container sends few.

A container's change of state goes to all, and every container's state each second. A freed slot is published to the
home that granted it, if the origin is another gateway. Gateways that have links get all of these over them, in order
with the frames, and do not read those of the bus.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from pilotlight_core.bus import BusError, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState, Credit
from pilotlight_runtime.calls.gateway_links import GatewayLinks, Publisher

log = structlog.get_logger(__name__)

REPEAT_GONE_S = 10.0
"""How long the credit of a gone container is repeated, for receivers that missed it."""


class CreditSource(Protocol):
    id: str
    version: str
    tenant: str
    function: str
    state: ContainerState
    reason: str
    error: RemoteError | None
    timeline: dict[str, float]

    @property
    def slots(self) -> int: ...

    @property
    def spare(self) -> int: ...

    @property
    def pressure(self) -> float: ...

    @property
    def held(self) -> tuple[str, ...]: ...

    @property
    def batch_room(self) -> int: ...

    @property
    def is_preempted(self) -> bool: ...


class Credits:
    """Publishes credits. `call_soon` runs a callback at the loop's next turn; changes until then are one message."""

    def __init__(
        self,
        bus: Publisher,
        links: GatewayLinks,
        *,
        region: str,
        node: str,
        instance: str,
        epoch_of: Callable[[str], int],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._bus = bus
        self._links = links
        self._region = region
        self._node = node
        self._instance = instance
        self._epoch_of = epoch_of
        self._call_soon = call_soon
        self._dirty: dict[str, CreditSource] = {}
        self._freed: defaultdict[str, dict[str, CreditSource]] = defaultdict(dict)
        """Home -> the containers in which slots were freed."""
        self._gone: dict[str, tuple[CreditSource, float]] = {}
        self._seq = 0

    def publish_soon(self, container: CreditSource) -> None:
        self._flush_soon()
        self._dirty[container.id] = container

    def slot_freed(self, container: CreditSource, home: str) -> None:
        self._flush_soon()
        self._freed[home][container.id] = container

    def container_gone(self, container: CreditSource, at: float) -> None:
        """Publish that a container has ended, and repeat it for REPEAT_GONE_S."""
        self._gone[container.id] = (container, at)
        self.publish_soon(container)

    def publish_all(self, containers: Iterable[CreditSource], at: float) -> None:
        """Publish the credit of every container; called each second."""
        self._gone = {name: (c, since) for name, (c, since) in self._gone.items() if at - since < REPEAT_GONE_S}
        for container in (*containers, *(container for container, _ in self._gone.values())):
            self._dirty[container.id] = container
        self.flush()

    def flush(self) -> None:
        """Publish what is due; what the bus refuses follows with the next second."""
        dirty, self._dirty = self._dirty, {}
        freed, self._freed = self._freed, defaultdict(dict)
        for one in dirty.values():
            credit = self._credit(one)
            self._links.send_all(credit)
            self._publish(subjects.credit(self._region, self._node, one.version), credit)
        for home, containers in freed.items():
            for one in containers.values():
                if one.id not in dirty:
                    credit = self._credit(one)
                    if not self._links.send(home, credit):
                        self._publish(subjects.reply(self._region, home, self._node), credit)

    def _publish(self, subject: str, credit: Credit) -> None:
        try:
            self._bus.publish_nowait(subject, credit)
        except MessageTooLarge as error:  # one container's fault must not stop the others'
            log.error("a credit was not sent", container=credit.container, error=str(error))
        except BusError:
            pass  # it follows with the next second

    def _flush_soon(self) -> None:
        if not self._dirty and not self._freed:
            self._call_soon(self.flush)

    def _credit(self, container: CreditSource) -> Credit:
        self._seq += 1
        return Credit(
            container=container.id,
            version=container.version,
            tenant=container.tenant,
            node=self._node,
            instance=self._instance,
            epoch=self._epoch_of(container.version),
            seq=self._seq,
            state=container.state,
            slots=container.slots,
            held=container.held,
            function=container.function,
            timeline=container.timeline,
            reason=container.reason,
            error=container.error,
            batch_room=container.batch_room,
            preempted=container.is_preempted,
            spare=container.spare,
            pressure=container.pressure,
        )
