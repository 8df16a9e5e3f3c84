"""Azure's notices: scheduled events, of which those about this machine count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.azure_notices import EVENTS, NAME, NOTICE_S, AzureNotices
from pilotlight_runtime.node.notices.notice_port import NoticesUnread
from tests.runtime.node.notices.metadata_server import Asked, Reply, metadata_server

NOW = 1_764_145_200.0
"""2025-11-26T08:20:00Z"""


def event(kind: str = "Preempt", machine: str = "vm-1", not_before: str = "Wed, 26 Nov 2025 08:20:30 GMT") -> Any:
    return {
        "EventId": "602d9444-d2cd-49c7-8624-8643e7171297", "EventType": kind, "ResourceType": "VirtualMachine",
        "Resources": [machine], "EventStatus": "Scheduled", "NotBefore": not_before, "Description": "",
        "EventSource": "Platform", "DurationInSeconds": -1,
    }  # fmt: skip


class Service:
    """The instance metadata of the machine `vm-1`."""

    def __init__(self, *events: Any) -> None:
        self.events = list(events)
        self.text = ""

    def __call__(self, asked: Asked) -> Reply:
        if asked.headers.get("metadata") != "true":
            return Reply(status=400)
        if asked.path == NAME:
            return Reply(text="vm-1")
        assert asked.path == EVENTS
        return Reply(text=self.text or json.dumps({"DocumentIncarnation": 3, "Events": self.events}))


async def look(service: Service, times: int = 1) -> list[NodeNotice | None]:
    async with metadata_server(service) as server:
        notices = AzureNotices(server.url, wall=lambda: NOW)
        try:
            return [await notices.poll() for _ in range(times)]
        finally:
            await notices.aclose()


async def test_a_preemption_has_the_time_before_which_it_does_not_come() -> None:
    """Of several the earliest."""
    later = event("Terminate", not_before="Wed, 26 Nov 2025 08:25:00 GMT")

    told = await look(Service(later, event()))

    assert told == [NodeNotice(kind=NoticeKind.PREEMPT, deadline=NOW + 30, reason="Azure: Preempt")]


async def test_other_machines_and_other_events_are_nothing_of_ours() -> None:
    """The document has those of the whole group."""
    assert await look(Service(event(machine="vm-2"), event("Reboot"), event("Freeze"))) == [None]


async def test_an_event_without_a_time_has_begun() -> None:
    """Its deadline does not move while it is looked at again."""
    told = await look(Service(event(not_before="")), times=2)

    assert [notice.deadline for notice in told if notice] == [NOW + NOTICE_S] * 2


async def test_an_event_that_is_gone_is_no_notice() -> None:
    """It was withdrawn: the source says so of itself."""
    service = Service(event())
    async with metadata_server(service) as server:
        notices = AzureNotices(server.url, wall=lambda: NOW)
        assert await notices.poll() is not None
        service.events.clear()
        assert await notices.poll() is None
        assert notices.revokes
        await notices.aclose()


@pytest.mark.parametrize(
    "text", ["no", "[]", '{"Events": 3}', '{"Events": [{"EventType": 7}]}', "{" * 5_000, '{"Events": [null]}']
)
async def test_garbage_is_no_notice(text: str) -> None:
    """A document of another form than is known."""
    service = Service()
    service.text = text
    with pytest.raises(NoticesUnread, match="no document"):
        await look(service)


async def test_a_time_that_is_none_is_said() -> None:
    """It is no reason to drain."""
    with pytest.raises(NoticesUnread, match="no time"):
        await look(Service(event(not_before="tomorrow")))
