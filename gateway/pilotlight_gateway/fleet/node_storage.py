"""Stores and reads for agents, which may ask no stream: usage and log lines of a node, how its GPUs are cut, and what
all processes have in common."""

from __future__ import annotations

from pilotlight_core.bus import Bus, BusError, MessageTooLarge
from pilotlight_core.bus.bus_errors import StoreRefused
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import StorageAnswer, StorageWanted
from pilotlight_gateway.fleet.node_questions import NodeQuestions

QUEUE = "node-storage"
"""One gateway answers each question."""
STORED_WITHIN_S = 4.0


def may_store(subject: str, region: str, node: str) -> bool:
    """Whether it is of what a node's agent writes."""
    match subject.split("."):
        case ["usage", at, of, tenant]:
            return (at, of) == (region, node) and _is_plain(tenant)
        case ["logs", at, of, tenant, app, function]:
            return (at, of) == (region, node) and all(map(_is_plain, (tenant, app, function)))
    return subject == key_subject(subjects.LAYOUT_BUCKET, node)


def stream_to_read(subject: str, node: str) -> str:
    """The stream of which a node's agent may read this; "": it may not."""
    if subject == key_subject(subjects.LAYOUT_BUCKET, node):
        return bucket_stream(subjects.LAYOUT_BUCKET)
    common = key_subject(subjects.PLATFORM_BUCKET, "")
    if subject.startswith(common) and all(map(_is_plain, subject.removeprefix(common).split("."))):
        return bucket_stream(subjects.PLATFORM_BUCKET)
    return ""


def _is_plain(word: str) -> bool:
    return bool(word) and not any(letter in word for letter in "*> \t\r\n")


class NodeStorage:
    """Decides what is stored and read. `node` is the one that the question's subject names."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._region = region

    async def answer(self, node: str, wanted: StorageWanted) -> StorageAnswer:
        """What came of it."""
        if wanted.data is None:
            stream = stream_to_read(wanted.subject, node)
            return await self._read(stream, wanted.subject) if stream else StorageAnswer(reason="not_its")
        if not may_store(wanted.subject, self._region, node):
            return StorageAnswer(reason="not_its")
        # The stream knows ids by themselves, so that one node's could stand in another's way.
        known = f"{wanted.subject}:"
        message_id = wanted.id if wanted.id.startswith(known) else f"{known}{wanted.id}"
        return await self._store(wanted.subject, wanted.data, message_id)

    async def _store(self, subject: str, data: bytes, message_id: str) -> StorageAnswer:
        try:
            seq = await self._bus.jetstream.store(subject, data, message_id=message_id, timeout=STORED_WITHIN_S)
        except (StoreRefused, MessageTooLarge) as error:
            return StorageAnswer(reason=error.detail)
        except BusError:
            return StorageAnswer(reason="down")
        return StorageAnswer(seq=seq)

    async def _read(self, stream: str, subject: str) -> StorageAnswer:
        try:
            found = await self._bus.jetstream.last(stream, subject)
        except BusError:
            return StorageAnswer(reason="down")
        if found is None or found.gone:
            return StorageAnswer()
        return StorageAnswer(seq=found.seq, data=found.data, at=found.at)


def storage_answers(bus: Bus, *, region: str) -> NodeQuestions[StorageWanted]:
    """What answers agents' questions for storage over the bus."""
    storage = NodeStorage(bus, region=region)
    busy = StorageAnswer(reason="busy")
    return NodeQuestions(bus, subjects.storage(region), StorageWanted, storage.answer, queue=QUEUE, busy=busy)
