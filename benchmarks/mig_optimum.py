"""How far policies for MIG places are from the best one: exactly, on two devices.

    python -m benchmarks.mig_optimum [--mix uniform,small] [--loads 0.8,1.0] [--quick]

The churn of `benchmarks.placement_mig` (Poisson arrivals, exponential lives, what fits is taken) on two A100s is a
Markov chain over pairs of layouts. Its best policy, which knows mix and load and sees every instance, is found by
relative value iteration; each other policy is a fixed choice in each state, valued in the same way. Nothing is drawn.

Figures: `MIX.LOAD.POLICY`, accepted arrivals in percent in the long run; `MIX.LOAD.optimum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.mig_churn import POLICIES, Fleet
from benchmarks.placement_mig import LOADS, MIXES, cell_of
from benchmarks.report import arguments, finish, table
from pilotlight_core.model.devices import MigPlacement
from pilotlight_placement.hardware.catalogue import family
from pilotlight_placement.hardware.geometry import Layout, layouts

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

DEVICES = 2
CLOSE = 2e-6
"""Part of the arrivals up to which the long run is known."""
STEPS = 20_000
NOWHERE = -1


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Pairs of layouts of two devices, as indices into `found`; a value is a matrix over both."""

    found: tuple[Layout, ...]
    """All layouts of the profiles that arrive."""
    rates: tuple[float, ...]
    """Arrivals by profile index, for each life of an instance."""

    @cached_property
    def place(self) -> dict[Layout, int]:
        return {layout: number for number, layout in enumerate(self.found)}

    @cached_property
    def masks(self) -> list[int]:
        return [family("seven").masks_of(layout) for layout in self.found]

    @cached_property
    def after(self) -> dict[tuple[int, int], Ints]:
        """(profile, start) -> the layout with that instance too, or NOWHERE."""
        seven = family("seven")
        table = {}
        for profile in seven.profiles:
            if not self.rates[profile.index]:
                continue
            for start in profile.starts:
                more = [
                    self.place[tuple(sorted((*layout, MigPlacement(start=start, profile=profile.key))))]
                    if not mask & profile.mask(start)
                    else NOWHERE
                    for layout, mask in zip(self.found, self.masks, strict=True)
                ]
                table[profile.index, start] = np.array(more, np.int32)
        return table

    @cached_property
    def without(self) -> list[Ints]:
        """The layout without its first, second, ... instance; itself where it has fewer."""
        most = max(map(len, self.found))
        return [
            np.array(
                [
                    self.place[layout[:gone] + layout[gone + 1 :]] if gone < len(layout) else number
                    for number, layout in enumerate(self.found)
                ],
                np.int32,
            )
            for gone in range(most)
        ]

    def left(self, value: Floats) -> Floats:
        """The sum over the instances of the first device, and its idle ones, of the value without them."""
        total: Floats = np.sum([value[gone] for gone in self.without], axis=0)
        return total

    def best(self, value: Floats, profile: int) -> Floats:
        """The highest value after an arrival of a profile is placed on the first device; -inf where it cannot be."""
        found = np.full_like(value, -np.inf)
        for (index, _), after in self.after.items():
            if index == profile:
                np.maximum(found, np.where(after[:, None] == NOWHERE, -np.inf, value[after]), out=found)
        return found

    def settle(self, chosen: dict[int, tuple[Ints, Ints]] | None = None) -> float:
        """Part of the arrivals that is accepted in the long run, by the best policy or by what one has chosen.

        `chosen` has by profile the layouts of both devices after an arrival, in each state.
        """
        arriving = sum(self.rates)
        leaving = DEVICES * len(self.without)
        value = np.zeros((len(self.found), len(self.found)))
        for _ in range(STEPS):
            after = self.left(value) + self.left(value.T).T
            for profile, rate in enumerate(self.rates):
                if rate and chosen is None:
                    one, other = self.best(value, profile), self.best(value.T, profile).T
                    taken = np.maximum(one, other) + 1
                    after += rate * np.where(np.isfinite(taken), taken, value)
                elif rate and chosen is not None:
                    first, second = chosen[profile]
                    accepted = first != NOWHERE
                    after += rate * np.where(accepted, value[first, second] + 1, value)
            after /= arriving + leaving
            gain = after - value
            if np.ptp(gain) * (arriving + leaving) / arriving < CLOSE:
                return float((gain.max() + gain.min()) / 2 * (arriving + leaving) / arriving)
            value = after - after[0, 0]
        raise RuntimeError(f"the long run is not known after {STEPS} steps")

    def choices(self, policy: str, mix: Sequence[float]) -> dict[int, tuple[Ints, Ints]]:
        """What a policy does in each state, once it knows the mix."""
        seven, size = family("seven"), len(self.found)
        decide = POLICIES[policy]()
        known: dict[tuple[int, int, int, int], tuple[int, int] | None] = {}
        made = {}
        fleets: dict[tuple[int, int, int], Fleet] = {}
        learnt = tuple(mix)
        for profile, rate in enumerate(self.rates):
            if not rate:
                continue
            first, second = (np.full((size, size), NOWHERE, np.int32) for _ in range(2))
            for one, other in product(range(size), range(size)):
                running = len(self.found[one]) + len(self.found[other])
                state = (self.masks[one], self.masks[other], running)
                if (*state, profile) not in known:
                    if state not in fleets:
                        fleet = fleets[state] = Fleet(family=seven, devices=DEVICES)
                        fleet.mix, fleet.running = learnt, running
                        fleet.change(0, state[0])
                        fleet.change(1, state[1])
                    known[*state, profile] = decide(fleets[state], profile)
                if (place := known[*state, profile]) is not None:
                    device, start = place
                    after = self.after[profile, start]
                    first[one, other] = after[one] if device == 0 else one
                    second[one, other] = after[other] if device == 1 else other
            made[profile] = (first, second)
        return made


def chain_of(mix: str, load: float) -> Chain:
    """The chain of a mix and a load on two devices."""
    cell = cell_of(mix, load)
    seven = cell.family
    size = sum(part * p.size for part, p in zip(cell.mix, seven.profiles, strict=True)) / sum(cell.mix)
    rate = load * DEVICES * seven.slots / size
    keys = [profile.key for profile, part in zip(seven.profiles, cell.mix, strict=True) if part]
    return Chain(
        found=tuple(sorted(layouts(seven, keys))), rates=tuple(rate * part / sum(cell.mix) for part in cell.mix)
    )


def main() -> None:
    """Value the best policy and the others in each cell."""
    parser = arguments("mig_optimum", "how far policies for MIG places are from the best one on two devices")
    parser.add_argument("--mix", default=",".join(MIXES), help=f"of {','.join(MIXES)}")
    parser.add_argument("--loads", default=",".join(map(str, LOADS)), help="memory asked for by memory that there is")
    parser.add_argument("--policies", default=",".join(POLICIES), help=f"of {','.join(POLICIES)}")
    options = parser.parse_args()
    mixes, loads, policies = options.mix.split(","), options.loads.split(","), options.policies.split(",")
    if options.quick:
        mixes, loads, policies = mixes[:1], loads[:1], policies[:1]
    figures: dict[str, float] = {}
    rows = []
    for mix, load in product(mixes, map(float, loads)):
        chain = chain_of(mix, load)
        cell = cell_of(mix, load)
        for policy in policies:
            figures[f"{mix}.{load}.{policy}"] = 100 * chain.settle(chain.choices(policy, cell.mix))
        figures[f"{mix}.{load}.optimum"] = 100 * chain.settle()
        rows.append([mix, load, *(f"{figures[f'{mix}.{load}.{name}']:.2f}" for name in (*policies, "optimum"))])
    table("accepted on two devices in the long run, %", ["mix", "load", *policies, "optimum"], rows)
    finish("mig_optimum", figures)


if __name__ == "__main__":
    main()
