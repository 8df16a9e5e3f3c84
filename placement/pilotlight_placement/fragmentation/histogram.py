"""The demand histogram: how often each shape of container was asked for lately, with a half-life.

New entries get more weight, instead of old ones less (forward decay, Cormode et al., ICDE 2009).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.asks.ask import ANY_GPU, CPU, MIB, Ask
from pilotlight_placement.hardware.catalogue import is_kind

HALF_LIFE_S = 1800.0
"""Long enough to see a mix, short enough to follow the day."""
MAX_SHAPES = 256
"""Further shapes are dropped, the lightest first."""
GRAIN_MIB = 256
"""Device memory is rounded up to this, so that nearly equal asks have one shape."""
HOST_BITS = 3
"""What is needed of the host is rounded up to so many leading bits, of millicores and of MiB."""


@dataclass(frozen=True, kw_only=True, order=True)
class AskShape:
    """The size of an ask: MiB on each of `count` devices; 0 MiB: whole devices."""

    mib: int
    count: int = 1
    share: bool = True
    cpu: int = 0
    """Thousandths of a core of the host."""
    memory: int = 0
    """MiB of the host."""
    types: tuple[str, ...] = ()
    """The GPU types that it accepts, in the order of their names; empty: any."""

    @property
    def host(self) -> HostShare:
        return HostShare(cpu_millis=self.cpu, memory=self.memory * MIB)

    def accepts(self, device: str) -> bool:
        """Whether it may have a device of that name."""
        return not self.types or any(is_kind(name, device) for name in self.types)

    @classmethod
    def of(cls, ask: Ask) -> AskShape | None:
        """The shape of an ask; None for a CPU slot."""
        count = ask.choices[0].count
        if ask.choices[0].type == CPU:
            return None
        whole = count > 1 or not ask.vram
        mib = 0 if whole else -(-ask.mib() // GRAIN_MIB) * GRAIN_MIB
        types = tuple(sorted({choice.type for choice in ask.choices}))
        return cls(
            mib=mib,
            count=count,
            share=not whole and ask.isolation is Isolation.SHARED,
            cpu=round_up(ask.cpu, HOST_BITS),
            memory=round_up(-(-ask.memory // MIB), HOST_BITS),
            types=() if ANY_GPU in types else types,
        )


class DemandHistogram:
    """Weights by shape. Time is seconds of one clock."""

    def __init__(self, half_life_s: float = HALF_LIFE_S) -> None:
        self._half_life = half_life_s
        self._weights: dict[AskShape, float] = {}
        self._origin = 0.0

    def observe(self, shape: AskShape, at: float, count: float = 1.0) -> None:
        if at - self._origin > 32 * self._half_life:
            self._rebase(at)
        grown = count * 2.0 ** ((at - self._origin) / self._half_life)
        self._weights[shape] = self._weights.get(shape, 0.0) + grown
        if len(self._weights) > 2 * MAX_SHAPES:
            heaviest = sorted(self._weights.items(), key=lambda item: (-item[1], item[0]))
            self._weights = dict(heaviest[:MAX_SHAPES])

    def weights(self, at: float) -> dict[AskShape, float]:
        fade = 2.0 ** (-(at - self._origin) / self._half_life)
        return {shape: weight * fade for shape, weight in sorted(self._weights.items())}

    def shares(self) -> dict[AskShape, float]:
        """The part of each shape in all asks; they sum to 1 unless there were none."""
        total = sum(self._weights.values())
        return {shape: weight / total for shape, weight in sorted(self._weights.items())} if total else {}

    def distance(self, mix: dict[AskShape, float]) -> float:
        """How far its parts are from a mix, 0 to 2."""
        total = sum(self._weights.values())
        return distance({shape: weight / total for shape, weight in self._weights.items()} if total else {}, mix)

    def __iter__(self) -> Iterator[AskShape]:
        return iter(sorted(self._weights))

    def _rebase(self, at: float) -> None:
        fade = 2.0 ** (-(at - self._origin) / self._half_life)
        faded = {shape: weight * fade for shape, weight in self._weights.items()}
        self._weights = {shape: weight for shape, weight in faded.items() if weight > 1e-6}
        self._origin = at


def distance(one: dict[AskShape, float], other: dict[AskShape, float]) -> float:
    """The distance of two mixes, 0 to 2: the sum of absolute differences of their parts."""
    return sum(abs(one.get(shape, 0.0) - other.get(shape, 0.0)) for shape in one.keys() | other.keys())


def round_up(count: int, bits: int) -> int:
    """A count rounded up to its leading bits; exact below 2**bits."""
    rest = max(0, count.bit_length() - bits)
    return -(-count >> rest) << rest
