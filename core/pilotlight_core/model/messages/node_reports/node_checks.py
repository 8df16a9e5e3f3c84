"""What is believed of a message of an agent: only what concerns its own node, and containers that are bound there.

Pure. `node` is the one that the message's subject names (`subjects.node_of`), which the bus vouches for.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from pilotlight_core.model.devices import FAKE_PRICE, UNKNOWN_PRICE, DeviceReport, is_cpu_price, is_cpu_slot
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.node_messages import (
    ContainerReport,
    ContainerState,
    Credit,
    EndedContainer,
    NodeReport,
    SliceKind,
    SliceReport,
)


class NodeFault(StrEnum):
    """Why a message of an agent is not believed."""

    OTHER_NODE = "other_node"  # it is about another node than its sender's
    NOT_BOUND = "not_bound"  # no such container is bound
    BOUND_ELSEWHERE = "bound_elsewhere"  # the container is another node's
    OTHER_VERSION = "other_version"  # the container was bound for another version, tenant or slice
    OTHER_PRICE = "other_price"  # the price of a slice is not its device's
    MORE_ROOM = "more_room"  # it claims more slots than its version has
    NOT_ITS_CALL = "not_its_call"  # the call was sent to another node, or to none
    TOO_MANY_NODES = "too_many_nodes"
    SENSELESS = "senseless"  # what it describes cannot be


def credit_fault(node: str, credit: Credit, binding: Binding | None) -> NodeFault | None:
    """Why a credit is not believed; None: it is."""
    if credit.node != node:
        return NodeFault.OTHER_NODE
    if binding is None:
        return NodeFault.NOT_BOUND
    if binding.node != node:
        return NodeFault.BOUND_ELSEWHERE
    if (credit.version, credit.tenant, credit.function) != (binding.version, binding.tenant, binding.function):
        return NodeFault.OTHER_VERSION
    if max(credit.slots, credit.spare, credit.batch_room, len(credit.held)) > binding.slots:
        return NodeFault.MORE_ROOM
    return None


def container_fault(node: str, container: ContainerReport, binding: Binding | None) -> NodeFault | None:
    """Why a node's report of a container is not believed; None: it is."""
    if binding is None:
        return NodeFault.NOT_BOUND
    if binding.node != node:
        return NodeFault.BOUND_ELSEWHERE
    if container.version != binding.version or container.tenant != binding.tenant:
        return NodeFault.OTHER_VERSION
    if container.slice != binding.slice and not _may_be_elsewhere(container, binding):
        return NodeFault.OTHER_VERSION
    named = (container.app, container.function)
    # Before it has the manifest, its agent does not know what the function is called.
    if named not in (binding.app_and_function, ("", "")):
        return NodeFault.OTHER_VERSION
    return NodeFault.MORE_ROOM if container.slots > binding.slots or container.running > binding.slots else None


def _may_be_elsewhere(container: ContainerReport, binding: Binding) -> bool:
    """Whether it need not be on the slice that it was bound to: parked on none, and unparked on any CPU slot."""
    if not container.slice:
        return container.state in (ContainerState.PARKED, ContainerState.DRAINING)
    return is_cpu_price(binding.price) and is_cpu_slot(container.slice)


def ended_fault(node: str, ended: EndedContainer, binding: Binding | None) -> NodeFault | None:
    """Why a node's word that a container has ended is not believed; None: it is, or nobody remembers the container."""
    if binding is None:
        return None
    if binding.node != node:
        return NodeFault.BOUND_ELSEWHERE
    return NodeFault.OTHER_VERSION if (ended.version, ended.tenant) != (binding.version, binding.tenant) else None


def price_fits(kind: SliceKind, gpu_type: str, price: str) -> bool:
    """Whether the price id of a slice is that of its device: a node must not sell its processors as GPUs."""
    if kind is SliceKind.CPU:
        return is_cpu_price(price)
    price = price.removeprefix(FAKE_PRICE)
    return price == UNKNOWN_PRICE or (bool(price) and gpu_type.lower().startswith(price))


def believed(
    node: str, report: NodeReport, binding_of: Callable[[str], Binding | None], last: NodeReport | None = None
) -> tuple[NodeReport, dict[str, NodeFault]]:
    """The report without the containers and slices that are not believed; these by their ids, with the reasons.

    `last` is an earlier report of the node, after this check: what it has of hardware is believed.
    """
    faults: dict[str, NodeFault] = {}
    if last is None or report.slices is not last.slices:
        faults |= {part.id: NodeFault.OTHER_PRICE for part in report.slices if not _is_priced(part)}
    if last is None or report.devices is not last.devices:
        faults |= {gpu.id: NodeFault.OTHER_PRICE for gpu in report.devices if not _is_priced(gpu)}
    for container in report.containers:
        if (fault := container_fault(node, container, binding_of(container.id))) is not None:
            faults[container.id] = fault
    if not faults:
        return report, faults
    kept = msgspec.structs.replace(
        report,
        slices=tuple(part for part in report.slices if part.id not in faults),
        devices=tuple(gpu for gpu in report.devices if gpu.id not in faults),
        containers=tuple(container for container in report.containers if container.id not in faults),
    )
    return kept, faults


def _is_priced(part: SliceReport | DeviceReport) -> bool:
    if isinstance(part, DeviceReport):
        return price_fits(SliceKind.GPU, part.type, part.price)
    return price_fits(part.kind, part.gpu_type, part.price)
