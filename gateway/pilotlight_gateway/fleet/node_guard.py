"""Believes of agents' messages what concerns their own nodes, and containers that the controller bound there."""

from __future__ import annotations

from collections import OrderedDict, deque

import msgspec

from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.host.node_faults import NodeFaults
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.node_messages import ContainerState, Credit, NodeReport
from pilotlight_core.model.messages.node_reports.node_checks import NodeFault, believed, credit_fault

EARLY_S = 2.0
"""How long a credit waits for its container's binding: the two come on different ways."""
EARLY_AT_MOST = 256
"""Containers with such credits."""
EARLY_OF_ONE = 8


class NodeGuard:
    """`node` is always the one that the message's subject names. Instants are monotonic seconds."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self.faults = NodeFaults()
        self._early: OrderedDict[tuple[str, str], tuple[deque[Credit], float]] = OrderedDict()
        """Node and container -> its credits that have no binding yet, and when the first one came."""

    def believes_credit(self, node: str, credit: Credit, at: float) -> bool:
        """Whether a credit is believed; one that may be ahead of its binding waits for `bound`."""
        is_gone = credit.state is ContainerState.GONE  # which is repeated after the end of the binding
        binding = self._bindings.lately(credit.container) if is_gone else self._bindings.live(credit.container)
        fault = credit_fault(node, credit, binding)
        if fault is None:
            return True
        if fault is NodeFault.NOT_BOUND and self._bindings.lately(credit.container) is None:
            if not is_gone:  # else nobody here has known the container
                self._wait(node, credit, at)
        else:
            self.faults.note(node, f"credit of {credit.container}", fault, at)
        return False

    def bound(self, binding: Binding) -> list[Credit]:
        """A container was bound; returns its credits that were ahead of this and are believed now, in order."""
        early, _ = self._early.pop((binding.node, binding.container), ((), 0.0))
        return [credit for credit in early if credit_fault(binding.node, credit, binding) is None]

    def believed_report(self, node: str, report: NodeReport, at: float) -> NodeReport | None:
        """What is believed of a report; None: nothing."""
        if report.node != node:
            self.faults.note(node, "report", NodeFault.OTHER_NODE, at)
            return None
        kept, faults = believed(node, report, self._bindings.live)
        for name, fault in faults.items():
            if fault is not NodeFault.NOT_BOUND:  # else the report may be ahead of the binding
                self.faults.note(node, name, fault, at)
        return kept

    def note_crowd(self, node: str, at: float) -> None:
        """There is no room for another node."""
        self.faults.note(node, "report", NodeFault.TOO_MANY_NODES, at)

    def note_frame(self, node: str, call_id: str, at: float) -> None:
        """A frame of a call came from a node that does not hold it."""
        self.faults.note(node, f"frame of {call_id}", NodeFault.NOT_ITS_CALL, at)

    def expire(self, at: float) -> None:
        """Give up the credits whose binding has not come."""
        while self._early:
            _, since = next(iter(self._early.values()))
            if since > at - EARLY_S:
                return
            self._give_up(at)

    def _wait(self, node: str, credit: Credit, at: float) -> None:
        early, _ = self._early.setdefault((node, credit.container), (deque(maxlen=EARLY_OF_ONE), at))
        early.append(msgspec.structs.replace(credit, held=(), reason="", error=None))  # these have no bound
        if len(self._early) > EARLY_AT_MOST:
            self._give_up(at)

    def _give_up(self, at: float) -> None:
        (node, container), _ = self._early.popitem(last=False)
        self.faults.note(node, f"credit of {container}", NodeFault.NOT_BOUND, at)
