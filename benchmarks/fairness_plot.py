"""The picture of a fairness run: how many slots each tenant had, second by second, and its service so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

WINDOW_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What one load did."""

    held: Mapping[str, Callable[[float, float], float]]
    """Tenant -> slot-seconds that it was served between two instants."""
    begins: float
    seconds: float

    def slots(self, tenant: str) -> list[float]:
        """Slots that the tenant had, window by window."""
        starts = [self.begins + number * WINDOW_S for number in range(int(self.seconds / WINDOW_S))]
        return [self.held[tenant](start, start + WINDOW_S) / WINDOW_S for start in starts]


def draw(panels: Mapping[str, Panel], path: Path) -> None:
    """Write a PNG: a column a load, slots held above, service so far below."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    if not panels:
        return
    figure, axes = plt.subplots(2, len(panels), figsize=(5.2 * len(panels), 6.4), squeeze=False, layout="constrained")
    for column, (title, panel) in enumerate(panels.items()):
        above, below = axes[0][column], axes[1][column]
        for tenant in panel.held:
            slots = panel.slots(tenant)
            at = [(number + 1) * WINDOW_S for number in range(len(slots))]
            style = {"linewidth": 2.0, "color": "black"} if tenant == "elephant" else {"linewidth": 0.9}
            above.plot(at, slots, label=tenant, **style)
            below.plot(at, list(accumulate(slot * WINDOW_S for slot in slots)), **style)
        above.set(title=title, ylabel="slots held" if not column else "", ylim=(0, None))
        below.set(xlabel="seconds", ylabel="service so far, slot-seconds" if not column else "", ylim=(0, None))
        above.legend(fontsize="x-small", ncols=2)
        for panel_axes in (above, below):
            panel_axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
