"""The device memory of a model, computed line by line so that a refusal can be checked by hand.

    weights          parameters x bytes of one, by precision
    KV cache         2 (key and value) x layers x KV heads x head size x bytes of one x tokens in all contexts
    activations      of one forward pass: measured at deploy, or batch tokens x hidden size x a factor
    context          of the driver and the libraries in each process

Everything is bytes. Several GPUs share weights, KV cache and activations evenly (tensor parallel); each has its own
context.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_core.model.placing import CONTEXT_BYTES, PRECISIONS, Model

GIB = 2**30
ACTIVATION_FACTOR = 8
"""Live tensors of hidden size per token in a transformer's largest layer: residual, QKV, a 4x wide one, norm."""


@dataclass(frozen=True, kw_only=True)
class MemoryLine:
    """One line of the computation, with bytes on each device."""

    what: str
    arithmetic: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    rows: tuple[MemoryLine, ...]
    devices: int

    @property
    def per_device(self) -> int:
        return sum(row.bytes for row in self.rows)

    @property
    def total(self) -> int:
        """Bytes on all devices, as in `Ask.vram`."""
        return self.per_device * self.devices

    def lines(self) -> list[str]:
        shown = [f"{row.what:<12} {row.bytes / GIB:8.2f} GiB  = {row.arithmetic}" for row in self.rows]
        each = f" on each of {self.devices} GPUs" if self.devices > 1 else ""
        return [*shown, f"{'total':<12} {self.per_device / GIB:8.2f} GiB{each}"]


def memory_plan(
    model: Model, *, concurrency: int = 1, context_tokens: int = 0, batch_tokens: int = 0, devices: int = 1
) -> MemoryPlan:
    """The memory of a model at `concurrency` contexts of `context_tokens`, with `batch_tokens` in one forward pass."""
    among = f" / {devices} GPUs" if devices > 1 else ""
    rows = [_weights(model, devices, among)]
    if model.layers:
        rows.append(_kv_cache(model, concurrency, context_tokens, devices, among))
    rows.append(_activations(model, batch_tokens or concurrency, devices, among))
    rows.append(MemoryLine(what="context", arithmetic="driver and libraries, each process", bytes=CONTEXT_BYTES))
    return MemoryPlan(rows=tuple(rows), devices=devices)


def declared(vram: int, devices: int = 1) -> MemoryPlan:
    among = f" / {devices}" if devices > 1 else ""
    row = MemoryLine(what="declared", arithmetic=f"vram={vram / GIB:.2f} GiB{among}", bytes=-(-vram // devices))
    return MemoryPlan(rows=(row,), devices=devices)


def shortfall(plan: MemoryPlan, largest: int, name: str) -> list[str]:
    """The lines, and what is missing on the largest slice: `largest` bytes, called `name`."""
    missing = plan.per_device - largest
    verdict = f"{-missing / GIB:.2f} GiB remain" if missing <= 0 else f"{missing / GIB:.2f} GiB are missing"
    return [*plan.lines(), f"{'largest':<12} {largest / GIB:8.2f} GiB  = {name}: {verdict}"]


def _weights(model: Model, devices: int, among: str) -> MemoryLine:
    each = PRECISIONS[model.precision]
    arithmetic = f"{model.parameters / 1e9:.2f} G parameters x {each:g} B ({model.precision}){among}"
    return MemoryLine(what="weights", arithmetic=arithmetic, bytes=_part(model.parameters * each, devices))


def _kv_cache(model: Model, concurrency: int, context_tokens: int, devices: int, among: str) -> MemoryLine:
    each = PRECISIONS[model.kv_precision]
    token = 2 * model.layers * model.kv_heads * model.head_size * each
    arithmetic = (
        f"2 x {model.layers} layers x {model.kv_heads} KV heads x {model.head_size} x {each:g} B "
        f"x {context_tokens} tokens x {concurrency} contexts{among}"
    )
    return MemoryLine(
        what="KV cache", arithmetic=arithmetic, bytes=_part(token * context_tokens * concurrency, devices)
    )


def _activations(model: Model, tokens: int, devices: int, among: str) -> MemoryLine:
    if model.activations is not None:
        return MemoryLine(what="activations", arithmetic=f"measured{among}", bytes=_part(model.activations, devices))
    each = PRECISIONS[model.precision] if model.precision in ("fp32", "bf16", "fp16") else 2.0
    arithmetic = f"{tokens} tokens x {model.hidden} hidden x {ACTIVATION_FACTOR} x {each:g} B{among}"
    return MemoryLine(
        what="activations",
        arithmetic=arithmetic,
        bytes=_part(tokens * model.hidden * ACTIVATION_FACTOR * each, devices),
    )


def _part(total: float, devices: int) -> int:
    return int(-(-total // devices))
