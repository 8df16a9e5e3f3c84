"""The product on the openb fleet: its `Fleet`, its `Ask`s, and its `place()` for each task.

Nothing here decides. A machine is a `Node` with its cores, its memory, devices of its model that may be shared, and CPU
slots; a task is an `Ask` of one tenant, for whichever of the types that it accepts, at one price for all. What the
policy may know of the demand is what FGD is given (the typical tasks of the trace), by the histogram from which the
controller's fleet takes it.
"""

from __future__ import annotations

from itertools import count

from benchmarks.openb.baselines import Choice
from benchmarks.openb.trace import WHOLE, Kind, Machine, Trace
from pilotlight_core.model.devices import CPU_PRICE, PRICED_GPUS, UNKNOWN_PRICE, gpu_price
from pilotlight_core.model.messages.node_messages import HostShare, SliceKind
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import ANY_GPU, MIB, Ask
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fragmentation.histogram import GRAIN_MIB, AskShape, DemandHistogram
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.node import Gpu, Node, Slot
from pilotlight_placement.search.decision_record import NoFit
from pilotlight_placement.search.place import place

PART_MIB = GRAIN_MIB
"""Device memory that stands for one milli-GPU: the traces tell parts of devices, the product's asks memory."""
MOST_SLOTS = 128
"""CPU slots of a node at most."""

ONE_PRICE = PriceBook(rates=dict.fromkeys((*map(gpu_price, PRICED_GPUS), UNKNOWN_PRICE, CPU_PRICE), 10**9))
"""Of every model: the trace names none."""


class Ours:
    """The fleet of a trace, and the product's decision for each task."""

    def __init__(self, trace: Trace, order: tuple[int, ...]) -> None:
        self._kinds = trace.kinds
        self._numbers = count()
        self._rows: dict[str, int] = {}
        least = min((kind.cpu for kind in trace.kinds if not kind.count), default=0)
        nodes = []
        for row, number in enumerate(order):
            machine = trace.machines[number]
            # As the simulator names them, so that the fixed order of nodes changes with the seed.
            name = f"{row:04}-{machine.name}"
            self._rows[name] = row
            nodes.append(node_of(name, machine, slots_of(machine, least)))
        self._asks = [ask_of(kind) for kind in trace.kinds]
        self.fleet = Fleet(nodes, prices=Prices(book=ONE_PRICE))
        self.fleet.follow(demand(trace))

    def choose(self, number: int) -> Choice:
        """Place a task of a kind: it has its place in the product's fleet from then on."""
        found = place(self.fleet, self._asks[number])
        if isinstance(found, NoFit):
            return None
        self.fleet.hold(found.held(f"task-{next(self._numbers)}"))
        gpu = int(found.slice.ids[0].rpartition("-")[2]) if self._kinds[number].shares else -1
        return self._rows[found.slice.node], gpu


def node_of(name: str, machine: Machine, slots: int) -> Node:
    """A machine of the trace as the product's node."""
    device = Device(name=machine.model, architecture="", memory=WHOLE * PART_MIB, sms=1)
    return Node(
        name=name,
        gpus=tuple(Gpu(id=f"{name}-gpu-{n}", device=device, shareable=True) for n in range(machine.gpus)),
        slots=tuple(
            Slot(id=f"{name}-cpu-{n}", kind=SliceKind.CPU, type="CPU", memory=0, ppm=WHOLE) for n in range(slots)
        ),
        host=HostShare(cpu_millis=machine.cpu, memory=machine.memory * MIB),
    )


def slots_of(machine: Machine, least_cpu: int) -> int:
    """As many CPU slots as the smallest tasks without GPU could use; none if all tasks need a GPU."""
    return min(MOST_SLOTS, machine.cpu // max(1, least_cpu)) if least_cpu else 0


def ask_of(kind: Kind) -> Ask:
    """A task of the trace as the product's ask."""
    types = sorted(kind.models) or [ANY_GPU]
    return Ask(
        tenant="openb",
        gpu=tuple(GpuAsk(model, kind.count) for model in types) if kind.count else (),
        vram=kind.milli * PART_MIB * MIB if kind.shares else 0,
        memory=kind.memory * MIB,
        cpu=kind.cpu,
        by_cost=True,
    )


def demand(trace: Trace) -> DemandHistogram:
    """The tasks of the trace that are typical, as if each had been asked for once."""
    known = {(task.cpu, task.milli, task.count, task.models) for task in trace.typical}
    histogram = DemandHistogram()
    for number in trace.pods:
        kind = trace.kinds[number]
        if (kind.cpu, kind.milli, kind.count, kind.models) in known and (shape := AskShape.of(ask_of(kind))):
            histogram.observe(shape, 0.0)
    return histogram
