"""The picture of the runs: allocated GPUs against demand, one panel a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.openb.cluster import Floats

FROM = 80
"""Below this demand every policy places everything."""
COLUMNS = 3


def draw(curves: Mapping[str, Mapping[str, Sequence[Floats]]], path: Path) -> None:
    """Write a PNG. `curves`: trace -> policy -> one curve a seed, percent by percent of demand."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = min(COLUMNS, len(curves))
    rows = -(-len(curves) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.6 * columns, 3.6 * rows), squeeze=False, layout="constrained")
    for panel in axes.flat[len(curves) :]:
        panel.axis("off")
    for panel, (trace, policies) in zip(axes.flat, curves.items(), strict=False):
        for policy, runs in policies.items():
            values = np.ma.masked_invalid(np.array(runs))
            mean = values.mean(axis=0).filled(np.nan)
            demand = np.arange(len(mean))
            style = {"linewidth": 2.2, "color": "black"} if policy == "ours" else {"linewidth": 1.1}
            panel.plot(demand[FROM:], mean[FROM:], label=policy, **style)
        panel.plot([FROM, 100], [FROM, 100], color="grey", linestyle=":", linewidth=0.8)
        panel.set(
            title=trace, xlabel="GPUs asked for, % of the fleet", ylabel="GPUs allocated, %", ylim=(FROM - 5, 100)
        )
        panel.grid(alpha=0.3)
    axes.flat[0].legend(loc="lower right", fontsize="small")
    figure.savefig(path, dpi=110)
    plt.close(figure)
