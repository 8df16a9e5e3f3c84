"""`pilotlight profile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from pilotlight.cli.arguments import read_arguments, read_ref
from pilotlight.cli.command_app import command_app
from pilotlight.cli.completions import function_names
from pilotlight.cli.output import milliseconds, note, print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.cli.timeline import Timeline
from pilotlight.client.answer_pace import AnswerPace
from pilotlight.client.profiling import MIN_BATCHES, SliceBenchmark, batch_sizes, point_of
from pilotlight.client.transport.wire import OutgoingCall
from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.api.curve_api import (
    Curve,
    CurvePoint,
    CurveRequest,
    FunctionCurves,
    MethodLoad,
    SliceKindInfo,
)
from pilotlight_core.model.units import rate

app = command_app()
WAIT_S = 60.0
"""Long enough to empty and cut a GPU; others' work may take longer."""
COLUMNS = ("gpu", "slice", "batch", "per second", "p50", "p95", "batches", "source")
NUMBERS = COLUMNS[2:7]
LESS = ("source", "batches", "p50")
PACE_COLUMNS = ("gpu", "slice", "batch", "tokens/s", "ttft p50", "ttft p95", "itl p50", "itl p95")


@app.command()
def profile(
    ref: Annotated[
        str,
        typer.Argument(help="app.function, app.Class.method, app.function@v7", autocompletion=function_names),
    ],
    arguments: Annotated[list[str] | None, typer.Argument(help="name=value; values are JSON if they can be")] = None,
    whole: Annotated[str | None, typer.Option("--input", help="all arguments: JSON, FILE, @FILE, or -")] = None,
    method: Annotated[str | None, typer.Option("--method", "-m", help="the method of a class")] = None,
    batch: Annotated[str, typer.Option(help="batch sizes, such as 1,2,4,8; default: 1, 2, 4 … the largest")] = "",
    slices: Annotated[
        list[str] | None, typer.Option("--slice", help="only this kind: 3g, H100-80GB/3g; may be repeated")
    ] = None,
    seconds: Annotated[float, typer.Option(help="for each batch size on each kind of slice", min=0.1, max=600)] = 5.0,
    wait: Annotated[float, typer.Option(help="seconds to wait for a free slice of each kind", min=0.1)] = WAIT_S,
    show: Annotated[bool, typer.Option("--show", help="only show what is known; nothing is called")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Measure how fast a function is on each kind of slice.

    It makes real calls with the given arguments, at their usual cost, in a container of its own for each kind of slice
    in the fleet. "Per second" is what came back to this caller; p50 and p95 are of one batch on the slice. The results
    are kept with the version; placement and `pilotlight plan` use them. Ctrl-C ends it and keeps the results so far.

    Of a language model it tells the pace too, as it came back: tokens per second, the time to the first token of an
    answer (TTFT), and between two of its tokens (ITL). These are printed, and not kept.

    \b
    pilotlight profile search.embed text="A small flame"
    pilotlight profile search.embed --input example.json --batch 1,8,32 --slice H100-80GB/3g --seconds 10
    pilotlight profile models.chat.generate prompt="Once upon a time" max_tokens=64 ignore_eos=true
    pilotlight profile search.embed --show
    """
    found, method = read_ref(ref, method)
    profiled = ask(client().platform.get_curves(str(found)))
    paces: list[PaceRow] = []
    if not show:
        load = load_of(profiled, method)
        run = ProfileRun(
            profiled=profiled,
            load=load,
            given=read_arguments(arguments or [], input_of(whole)),
            sizes=sizes_of(batch, load, profiled.version),
            seconds=seconds,
            wait_s=wait,
        )
        kinds = kinds_of(profiled, slices or [])
        try:
            for kind in kinds:
                run.measure(kind)
        finally:
            note(run.summary())
        profiled, paces = ask(client().platform.get_curves(str(found))), run.paces
    if as_json:
        told = {"version": profiled.version, "version_id": profiled.version_id, "curves": profiled.curves}
        print_json(told | {"paces": paces})
    else:
        if paces:
            print_table(PACE_COLUMNS, [row.cells() for row in paces], empty="", right=PACE_COLUMNS[2:])
            print_text("")
        print_table(COLUMNS, rows_of(profiled.curves), empty=unknown(profiled.version), right=NUMBERS, less=LESS)


def unknown(version: str) -> str:
    """Return the note for a version without curves: placement uses those of the version before it."""
    shown = f"'pilotlight placement plan {version}' tells what placement goes by"
    return f"Nothing was measured of {version} itself; {shown}."


@dataclass(kw_only=True)
class ProfileRun:
    """One run of the command: its calls and results."""

    profiled: FunctionCurves
    load: MethodLoad
    given: dict[str, object]
    sizes: Sequence[int]
    seconds: float
    wait_s: float = WAIT_S
    calls: int = 0
    cost: Decimal = field(default_factory=Decimal)
    kept: int = 0
    paces: list[PaceRow] = field(default_factory=list)
    """Of an engine, by batch size on each kind of slice."""

    def summary(self) -> str:
        """Return the number of calls, their cost, and whether results were kept."""
        kept = f"kept with {self.profiled.version}" if self.kept else "nothing was measured that could be kept"
        return f"{self.calls} calls, {self.cost:f} USD in all; {kept}"

    def measure(self, kind: SliceKindInfo) -> None:
        """Measure all batch sizes on one kind of slice; store each at once."""
        platform = client().platform
        own = self.profiled.version
        software = " (a GPU in software: its figures are those of the host's processors)" if kind.software else ""
        note(f"{own} on {kind.what}{software}")
        trial = ask(platform.start_trial(own, kind.gpu, kind.slice))
        outgoing = OutgoingCall(
            path=f"/v1/functions/{trial.ref}/calls", input=self.given, method=self.load.method or None, typed=False
        )
        bench = SliceBenchmark(client().calls, outgoing)
        with Timeline(own) as timeline:
            first = ask(bench.warm_up(timeline.on_stage, self.wait_s))
        self._count(1, first.cost)
        for size in self.sizes:
            load = ask(bench.measure(size, self.seconds, batches=self.load.batches, most=self.load.most))
            self._count(len(load.samples), load.cost)
            if (pace := load.pace) is not None:
                self.paces.append(PaceRow(gpu=kind.gpu, slice=kind.slice, pace=pace))
                note(f"  {pace_line(pace)}")
            point = point_of(load, batches=self.load.batches)
            if point is None:
                apart = sum(sample.batch == size for sample in load.samples)
                note(
                    f"  batch {size}: {apart} of {len(load.samples)} calls ran in batches of {size}; "
                    f"fewer than {MIN_BATCHES} batches say nothing, so it is not kept"
                )
                continue
            ask(platform.put_curve(own, CurveRequest(gpu=kind.gpu, slice=kind.slice, points=(point,))))
            self.kept += 1
            note(f"  {line_of(point)}")

    def _count(self, calls: int, cost: Decimal) -> None:
        self.calls += calls
        self.cost += cost


class PaceRow(msgspec.Struct, frozen=True, kw_only=True):
    """How fast tokens came from one kind of slice."""

    gpu: str
    slice: str
    pace: AnswerPace

    def cells(self) -> tuple[object, ...]:
        """Return the row of the table."""
        pace = self.pace
        times = (pace.ttft_p50_ms, pace.ttft_p95_ms, pace.itl_p50_ms, pace.itl_p95_ms)
        return (self.gpu, self.slice, pace.batch, rate(pace.tokens_per_second), *map(milliseconds, times))


def pace_line(pace: AnswerPace) -> str:
    return (
        f"batch {pace.batch}: {rate(pace.tokens_per_second)} tokens per second; the first one p50 "
        f"{milliseconds(pace.ttft_p50_ms)}, p95 {milliseconds(pace.ttft_p95_ms)}; between two p50 "
        f"{milliseconds(pace.itl_p50_ms)}, p95 {milliseconds(pace.itl_p95_ms)}"
    )


def line_of(point: CurvePoint) -> str:
    return (
        f"batch {point.batch}: {rate(point.throughput)} per second came back; on the slice p50 "
        f"{milliseconds(point.p50_ms)}, p95 {milliseconds(point.p95_ms)}, {point.samples} batches"
    )


def input_of(whole: str | None) -> str | None:
    """Return `--input` as calls take it: the name of a file becomes @FILE."""
    if whole is None or whole[:1] in ("@", "{", "-", "") or not Path(whole).is_file():
        return whole
    return f"@{whole}"


def load_of(profiled: FunctionCurves, method: str | None) -> MethodLoad:
    """Return how many calls of a method a container runs at once.

    Raises:
        Misuse: if the method is not named, or unknown.
    """
    for load in profiled.methods:
        if load.method == (method or "") or (not method and len(profiled.methods) == 1):
            return load
    names = ", ".join(load.method for load in profiled.methods)
    raise Misuse(f"{profiled.version}: name one of its methods: {names}.", field="method")


def sizes_of(text: str, load: MethodLoad, version: str) -> tuple[int, ...]:
    """Return the batch sizes of `--batch`.

    Raises:
        Misuse: if it cannot be read, or the function never runs so many at once.
    """
    if not text:
        return batch_sizes(load.most)
    try:
        sizes = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise Misuse(f"--batch {text!r}: expected numbers such as 1,2,4,8.", field="batch") from None
    if wrong := [size for size in sizes if not 1 <= size <= load.most]:
        what = "batches of at most" if load.batches else "at once at most"
        raise Misuse(f"--batch {wrong[0]}: {version} takes {what} {load.most}.", field="batch")
    return sizes


def kinds_of(profiled: FunctionCurves, named: Sequence[str]) -> tuple[SliceKindInfo, ...]:
    """Return the kinds of slices of `--slice`; without it all.

    Raises:
        Misuse: if none of that name could hold the function.
    """
    known = ", ".join(f"{kind.gpu}/{kind.slice}" for kind in profiled.slices) or "none"
    if not profiled.slices:
        raise Misuse(f"The fleet has nothing that {profiled.version} could run on.", field="slice")
    for name in named:
        if not any(is_named(kind, name) for kind in profiled.slices):
            raise Misuse(f"--slice {name}: {profiled.version} could run on {known}.", field="slice")
    return tuple(kind for kind in profiled.slices if not named or any(is_named(kind, name) for name in named))


def is_named(kind: SliceKindInfo, name: str) -> bool:
    """Whether a name is that of a kind of slice: its key, its device, or both."""
    both = f"{kind.gpu}/{kind.slice}"
    return name.lower() in (kind.slice.lower(), kind.gpu.lower(), both.lower())


def rows_of(curves: Sequence[Curve]) -> list[tuple[object, ...]]:
    return [
        (
            curve.gpu,
            curve.slice,
            point.batch,
            rate(point.throughput),
            milliseconds(point.p50_ms) if point.p50_ms else "-",
            milliseconds(point.p95_ms),
            point.samples or "-",
            source_of(curve),
        )
        for curve in curves
        for point in curve.points
    ]


def source_of(curve: Curve) -> str:
    """Return `measured`, with a note for GPUs in software."""
    return f"{curve.source.value}, in software" if curve.software else curve.source.value
