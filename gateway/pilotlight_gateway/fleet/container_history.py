"""What containers of each version did in the last hour, from the reports of their nodes: starts, ends, processors.

Every gateway hears every node each second, so each can answer alone. A node's report is read every `EVERY_S`, or when
something but what moves is new in it; those of engines each time. Bounded: `VERSIONS` versions, the last seen ones,
with `MINUTES` minutes of sums each. Pure: instants are monotonic seconds.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.node_messages import UNPARKED, ContainerReport, ContainerState, NodeReport

EVERY_S = 5.0
VERSIONS = 512
MINUTES = 60
ENGINE_SAMPLES = 120
"""Of a version: the last ones."""
REASON_CHARS = 200
REMEMBERED_S = 60.0
"""For so long a container that has ended is remembered since it was last told of; nodes tell for ten seconds."""
ORDERED = (ContainerState.DRAINING, ContainerState.PARKED)
"""Who ends out of these was told to."""
SERVING = (ContainerState.READY, *ORDERED)


@dataclass(slots=True)
class ContainerMinute:
    """Sums of one minute."""

    minute: int
    starts: int = 0
    failed_starts: int = 0
    ended: int = 0
    """That were told to, such as those without calls."""
    died: int = 0
    start_ms: float = 0.0
    """Of the starts that succeeded, together."""
    succeeded: int = 0
    cpu_ms: int = 0
    throttled_ms: int = 0
    memory_bytes: int = 0
    """The most that one has used."""
    reason: str = ""
    """Of the last that failed or died."""


@dataclass(frozen=True, slots=True)
class EngineSample:
    """One engine between two reports."""

    container: str
    seconds: float
    before: EngineReport
    after: EngineReport


@dataclass(slots=True)
class _Seen:
    """What was last heard of one container."""

    report: ContainerReport
    at: float
    was_ready: bool
    engine_at: float


@dataclass(slots=True)
class VersionHistory:
    """Of one version."""

    minutes: deque[ContainerMinute] = field(default_factory=lambda: deque(maxlen=MINUTES))
    engines: deque[tuple[float, EngineSample]] = field(default_factory=lambda: deque(maxlen=ENGINE_SAMPLES))

    def minute(self, at: float) -> ContainerMinute:
        """The sums of the minute of an instant."""
        number = int(at // 60)
        if not self.minutes or self.minutes[-1].minute < number:
            self.minutes.append(ContainerMinute(number))
        return self.minutes[-1]


class ContainerHistory:
    """Follows all containers of the fleet."""

    def __init__(self) -> None:
        self._versions: OrderedDict[str, VersionHistory] = OrderedDict()
        self._nodes: dict[str, tuple[str, int, float, dict[str, _Seen]]] = {}
        """By node: its incarnation, the revision and instant of the report that was read last, and its containers."""
        self._ends: dict[str, dict[str, float]] = {}
        """By node: the containers that have ended, and when that was last said."""

    def on_report(self, report: NodeReport, at: float) -> None:
        """Read a node's report, if it is time."""
        instance, revision, read_at, seen = self._nodes.get(report.node, ("", -1, float("-inf"), {}))
        is_same = instance == report.instance and report.revision == revision and report.revision > 0
        if is_same and at - read_at < EVERY_S and not any(each.engine is not None for each in report.containers):
            return
        if instance and instance != report.instance:
            seen = {}  # its containers went with the incarnation, which is no fault of theirs
        is_first = instance != report.instance
        self._nodes[report.node] = (report.instance, report.revision, at, self._read(report, seen, at, is_first))

    def forget_node(self, node: str) -> None:
        """A node has stopped in order, or is silent for long."""
        self._nodes.pop(node, None)
        self._ends.pop(node, None)

    def of(self, version: str, since: float) -> ContainerMinute:
        """The sums of a version since an instant, by whole minutes."""
        found = ContainerMinute(int(since // 60))
        known = self._versions.get(version)
        for minute in known.minutes if known is not None else ():
            if minute.minute >= found.minute:
                _add(found, minute)
        return found

    def engines(self, version: str, since: float) -> list[EngineSample]:
        """What its engines told since an instant."""
        known = self._versions.get(version)
        return [sample for at, sample in known.engines if at >= since] if known is not None else []

    def _read(self, report: NodeReport, seen: dict[str, _Seen], at: float, is_first: bool) -> dict[str, _Seen]:
        """`is_first`: nothing of this incarnation was read before, so that nobody here knows what has ended on it."""
        now: dict[str, _Seen] = {}
        for container in report.containers:
            if container.state is not ContainerState.GONE:
                now[container.id] = self._follow(container, seen.get(container.id), at)
        ended = {each.id: each for each in report.ended or ()}
        for name, last in seen.items():
            if name not in now:
                was_ready = ended[name].was_ready if name in ended else last.was_ready
                self._end(last, was_ready=was_ready, at=at)
        known = self._ends.get(report.node, {})
        for name, each in ended.items():  # it came and went between two reports that were read
            if name not in now and name not in seen and name not in known and not is_first:
                minute = self._of(each.version).minute(at)
                minute.starts += 1
                minute.failed_starts += not each.was_ready
        # It may be gone from a report before the node says that it ended.
        kept = {name: said_at for name, said_at in known.items() if said_at > at - REMEMBERED_S}
        self._ends[report.node] = kept | dict.fromkeys((*ended, *(seen.keys() - now.keys())), at)
        return now

    def _of(self, version: str) -> VersionHistory:
        known = self._versions.get(version)
        if known is None:
            known = self._versions[version] = VersionHistory()
            if len(self._versions) > VERSIONS:
                self._versions.popitem(last=False)
        else:
            self._versions.move_to_end(version)
        return known

    def _follow(self, container: ContainerReport, last: _Seen | None, at: float) -> _Seen:
        history = self._of(container.version)
        minute = history.minute(at)
        minute.memory_bytes = max(minute.memory_bytes, container.memory_bytes)
        is_ready = container.state in SERVING
        if last is None:
            if container.age_s <= EVERY_S * 2:
                minute.starts += 1
                _note_start(minute, container, is_ready)
            return _Seen(container, at, is_ready, at)
        if is_ready and not last.was_ready:
            _note_start(minute, container, is_ready)
        minute.cpu_ms += max(0, container.cpu_ms - last.report.cpu_ms)
        minute.throttled_ms += max(0, container.throttled_ms - last.report.throttled_ms)
        before, after = last.report.engine, container.engine
        if before is not None and after is not None and after.steps >= before.steps and at > last.engine_at:
            history.engines.append((at, EngineSample(container.id, at - last.engine_at, before, after)))
        return _Seen(container, at, is_ready or last.was_ready, at)

    def _end(self, last: _Seen, *, was_ready: bool, at: float) -> None:
        minute = self._of(last.report.version).minute(at)
        if not was_ready:
            minute.failed_starts += 1
            minute.reason = last.report.reason[:REASON_CHARS] or minute.reason
        elif last.report.state in ORDERED:
            minute.ended += 1
        else:
            minute.died += 1
            minute.reason = last.report.reason[:REASON_CHARS] or minute.reason


def _note_start(minute: ContainerMinute, container: ContainerReport, is_ready: bool) -> None:
    if is_ready and UNPARKED not in container.timeline and container.timeline:
        minute.succeeded += 1
        minute.start_ms += sum(container.timeline.values())


def _add(found: ContainerMinute, minute: ContainerMinute) -> None:
    for name in ("starts", "failed_starts", "ended", "died", "start_ms", "succeeded", "cpu_ms", "throttled_ms"):
        setattr(found, name, getattr(found, name) + getattr(minute, name))
    found.memory_bytes = max(found.memory_bytes, minute.memory_bytes)
    found.reason = minute.reason or found.reason
