"""Which nodes have which weights, in memory or on their disks. Pure.

Of weights that were pushed the nodes tell it. Of others there is a name that functions share, and weights of that name
are taken to be where a container that names them became ready, as long as the node's agent runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pilotlight_core.model.messages.node_messages import NodeReport, WeightsReport
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.versions.pushed_weights import RESIDENT, resident_id
from pilotlight_placement.hardware.node import in_memory

LOADED_SHARE = 0.9
MOST_OF_NODE = 256
"""Names of weights remembered of one node."""


@dataclass(frozen=True, kw_only=True)
class _Loaded:
    """What containers of one incarnation of a node's agent have loaded."""

    instance: str
    names: dict[str, None] = field(default_factory=dict)
    """The latest last."""


@dataclass(frozen=True, kw_only=True)
class _Told:
    """What a node's report says, and all that is known of it."""

    weights: tuple[WeightsReport, ...]
    loaded: tuple[str, ...]
    all: frozenset[str]


def _is_loaded(told: WeightsReport) -> bool:
    """Whether as good as all of it is in memory: what little is not is read as fast as it is asked for."""
    return told.resident >= LOADED_SHARE * told.size


@dataclass(kw_only=True)
class ResidentWeights:
    _named: dict[str, str] = field(default_factory=dict)
    """version -> the name that its containers' weights share with others'."""
    _loaded: dict[str, _Loaded] = field(default_factory=dict)
    """By node."""
    _told: dict[str, _Told] = field(default_factory=dict)
    """By node."""

    @property
    def named(self) -> Mapping[str, str]:
        """version -> the name of weights of which no node tells."""
        return self._named

    def note_version(self, version: str, record: VersionRecord | None) -> None:
        """A version has this record; None: it has none."""
        name = record.spec.placing.weights if record is not None else ""
        if record is None or not name or name.startswith(RESIDENT):
            self._named.pop(version, None)
        else:
            self._named[version] = f"{record.tenant}:{name}"

    def note_ready(self, report: NodeReport, name: str) -> None:
        """A container that loads weights of this name is ready on the report's node."""
        known = self._loaded.get(report.node)
        if known is None or known.instance != report.instance:
            known = self._loaded[report.node] = _Loaded(instance=report.instance)
        known.names.pop(name, None)
        known.names[name] = None
        if len(known.names) > MOST_OF_NODE:
            del known.names[next(iter(known.names))]

    def by_node(self, nodes: Mapping[str, NodeReport]) -> dict[str, frozenset[str]]:
        """The weights of each node that has some; equal ones are the same object as the last time."""
        found = {}
        for node in self._interesting(nodes.values()):
            report = nodes[node]
            loaded = self._loaded.get(node)
            names = tuple(sorted(loaded.names)) if loaded is not None and loaded.instance == report.instance else ()
            told = self._told.get(node)
            if told is None or told.weights != report.weights or told.loaded != names:
                ids = {resident_id(each.tenant, each.digest): _is_loaded(each) for each in report.weights}
                # Whoever is ready with weights of a name has them in memory.
                loaded_ids = [in_memory(one) for one in (*(name for name, there in ids.items() if there), *names)]
                told = self._told[node] = _Told(
                    weights=report.weights, loaded=names, all=frozenset((*ids, *names, *loaded_ids))
                )
            if told.all:
                found[node] = told.all
        return found

    def _interesting(self, reports: Iterable[NodeReport]) -> Iterator[str]:
        for report in reports:
            if report.weights or report.node in self._loaded or report.node in self._told:
                yield report.node

    def forget(self, node: str) -> None:
        """A node is lost."""
        self._loaded.pop(node, None)
        self._told.pop(node, None)
