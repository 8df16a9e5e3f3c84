"""What nodes are not believed is shown, also while there is none."""

from __future__ import annotations

from pilotlight_core.model.messages.node_checks import NodeFault
from pilotlight_gateway.metrics.node_metrics import node_fault_counts


def test_every_reason_is_shown() -> None:
    """An alert on a series that begins at its first fault would miss it."""
    (family,) = node_fault_counts({NodeFault.OTHER_NODE: 3})

    shown = {sample.labels["reason"]: sample.value for sample in family.samples}
    assert shown.keys() == set(NodeFault)
    assert (shown["other_node"], shown["not_bound"]) == (3, 0)
