"""The server behind the simulated bus: streams, keys and values, and what follows from a job's record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from pilotlight_core.bus import WrongRevision
from pilotlight_core.bus.jetstream import OutgoingMessage, StreamMessage, StreamPage
from pilotlight_core.bus.kv import EXPECTED
from pilotlight_core.bus.lease import LeaseRecord
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.messages.job_messages import JobsStored
from pilotlight_core.model.messages.wire import decode
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_core.model.subjects import JOB_BUCKET, JOB_STREAM, LEASE_BUCKET
from tests.simulation.board import Board
from tests.simulation.world import Mail, Process, World

UNIX = 1.7e9
"""The unix time at which a world begins."""
_job_of = msgspec.msgpack.Decoder(JobRecord)


class StreamServer(Process):
    """The streams of the bus. Every verb takes effect at once and for good."""

    def __init__(self, world: World, board: Board) -> None:
        super().__init__(world, "server")
        self._board = board
        self._streams: defaultdict[str, dict[int, StreamMessage]] = defaultdict(dict)
        self._last: dict[str, StreamMessage] = {}
        """Subject -> its newest message, of buckets."""
        self._known: dict[str, int] = {}
        """Message id -> the sequence at which it was stored."""
        self._seq = 0

    def boot(self) -> None:
        pass

    def listens(self, subject: str) -> bool:
        return False

    def receive(self, mail: Mail) -> None:
        pass

    def jobs(self) -> list[StreamMessage]:
        """The records of jobs."""
        return [record for record in self._streams[bucket_stream(JOB_BUCKET)].values() if _is_job(record.subject)]

    def told(self) -> set[str]:
        """The ids of the jobs that are named in the work queue."""
        messages = (decode(record.data) for record in self._streams[JOB_STREAM].values())
        return {note.id for message in messages if isinstance(message, JobsStored) for note in message.jobs}

    def store(self, subject: str, payload: bytes, message_id: str, headers: Mapping[str, str]) -> int:
        """Store a message, once; see `JetStream.store`."""
        if (seq := self._known.get(message_id)) is not None:
            return seq
        if EXPECTED in headers:
            self._check(subject, int(headers[EXPECTED]))
        self._known[message_id] = self._append(subject, payload)
        return self._seq

    def store_together(self, messages: Sequence[OutgoingMessage]) -> int:
        """Store all of them or none; see `JetStream.store_together`."""
        if len({message.subject for message in messages}) < len(messages):
            raise WrongRevision("A subject is written twice.")
        for message in messages:
            _, _, revision = message.headers.partition(f"{EXPECTED}: ".encode())
            self._check(message.subject, int(revision.split(b"\r\n")[0]))
        for message in messages:
            self._append(message.subject, message.payload)
        return self._seq

    def last(self, subject: str) -> StreamMessage | None:
        """The newest message of a subject; see `JetStream.last`."""
        lease = key_subject(LEASE_BUCKET, "gateway.")
        if subject.startswith(lease):
            return self._lease(subject, subject[len(lease) :])
        return self._last.get(subject)

    def page(self, stream: str, subject: str, seq: int, messages: int) -> StreamPage:
        """The next messages; see `JetStream.page`."""
        found = [one for one in self._streams[stream].values() if one.seq >= seq and one.subject == subject]
        return StreamPage(records=tuple(found[:messages]), pending=max(0, len(found) - messages))

    def delete(self, stream: str, seq: int) -> None:
        """Remove a message; see `JetStream.delete`."""
        self._streams[stream].pop(seq, None)

    def purge(self, stream: str, subject: str, below: int) -> int:
        """Remove the first messages of a subject; see `JetStream.purge`."""
        gone = [seq for seq, one in self._streams[stream].items() if one.subject == subject and seq < below]
        for seq in gone:
            del self._streams[stream][seq]
        return len(gone)

    def depths(self, stream: str) -> dict[str, int]:
        """How many messages there are by subject; see `JetStream.depths`."""
        found: defaultdict[str, int] = defaultdict(int)
        for one in self._streams[stream].values():
            found[one.subject] += 1
        return dict(found)

    def _check(self, subject: str, revision: int) -> None:
        there = self._last.get(subject)
        if (there.seq if there is not None else 0) != revision:
            raise WrongRevision(f"{subject} was changed by somebody else.")

    def _append(self, subject: str, payload: bytes) -> int:
        self._seq += 1
        record = StreamMessage(seq=self._seq, subject=subject, data=payload, headers={}, at=UNIX + self.world.now)
        if not subject.startswith("$KV."):
            self._streams[JOB_STREAM][record.seq] = record
            self.publish(subject, decode(payload))
            return self._seq
        before = self._last.get(subject)
        stream = self._streams[bucket_stream(subject.split(".")[1])]
        if before is not None:
            stream.pop(before.seq)
        stream[record.seq] = self._last[subject] = record
        if _is_job(subject):
            job = _job_of.decode(payload)
            self.world.note("WRITTEN", job.id, job.state, job.run, job.runner, "attempts", job.attempts)
            self.world.promises.jobs.written(_job_of.decode(before.data) if before is not None else None, job)
        return self._seq

    def _lease(self, subject: str, name: str) -> StreamMessage | None:
        for member in self._board.members(self.world.now):
            if member.name == name:
                value = msgspec.msgpack.encode(LeaseRecord(holder=name, data=member.instance.encode()))
                return StreamMessage(seq=member.epoch, subject=subject, data=value, headers={}, at=0.0)
        return None


def _is_job(subject: str) -> bool:
    """Not what a tenant has taken of its quota, which is in the same bucket."""
    return ".call_" in subject
