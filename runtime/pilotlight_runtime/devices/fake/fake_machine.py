"""A machine whose GPUs exist in software only: `pilotlight up --fake-gpus "2xH100:mig,1xT4:share"`.

Containers run on the host's processors, but are placed, cut for, metered and shown as on these GPUs, which follow the
catalogue and the strict double of NVML. A file keeps how they are cut until the host restarts. Their ids begin with
`FAKE-`, the price ids in receipts with `fake-`.

`python -m pilotlight_runtime.devices.fake.fake_machine SPEC` prints the faults of a spec.
"""

from __future__ import annotations

import contextlib
import re
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_placement.hardware.catalogue import Device, standard
from pilotlight_runtime.devices.fake.fake_gpu import MIB, FakeGpu, FakeInstance
from pilotlight_runtime.devices.fake.fake_nvml import FakeNvml

MOST = 64
"""GPUs of one machine; real ones have eight."""
LATENCY = {
    "nvmlDeviceCreateGpuInstanceWithPlacement": 0.15,
    "nvmlGpuInstanceCreateComputeInstance": 0.05,
    "nvmlGpuInstanceDestroy": 1.0,
    "nvmlDeviceSetMigMode": 1.0,
}
"""Function -> seconds, as in NVIDIA's own driver for Kubernetes."""
EXAMPLE = 'expected such as "2xH100:mig,1xT4" (with ":mig" it is in MIG mode, with ":share" given in shares)'
_ITEM = re.compile(r"(?:([0-9]{1,4})x)?([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)((?::[a-z]+)*)")
_NAMESPACE = uuid.UUID("5f0f6a1e-6f5c-4f7e-9a53-0d6a4e1f9b7c")


@dataclass(frozen=True, kw_only=True)
class FakeKind:
    count: int
    device: Device
    mig: bool
    share: bool


def parse_fake_gpus(text: str) -> tuple[FakeKind, ...]:
    """Read a spec of GPUs.

    Raises:
        BadInput: naming the wrong part.
    """
    kinds = tuple(_kind(item.strip()) for item in text.split(","))
    if sum(kind.count for kind in kinds) > MOST:
        raise BadInput(f"fake GPUs: {text!r} are more than {MOST} GPUs.", field="fake_gpus")
    return kinds


def _kind(item: str) -> FakeKind:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise BadInput(f"fake GPUs: {item!r} is not understood: {EXAMPLE}.", field="fake_gpus")
    count, name, options = int(found[1] or 1), found[2].upper(), found[3].split(":")[1:]
    catalogue = standard()
    device = catalogue.device(name)
    if device.name not in catalogue.devices:
        known = ", ".join(catalogue.devices)
        raise BadInput(f"fake GPUs: {name} is not in the catalogue, which has {known}.", field="fake_gpus")
    wrong = next((option for option in options if option not in ("mig", "share")), "")
    if wrong or len(options) > 1:
        raise BadInput(f"fake GPUs: {item!r} has an option too many or unknown: {EXAMPLE}.", field="fake_gpus")
    if not 1 <= count <= MOST:
        raise BadInput(f"fake GPUs: {item!r}: the count must be 1 to {MOST}.", field="fake_gpus")
    if "mig" in options and device.family is None:
        raise BadInput(f"fake GPUs: {item!r}: a {device.name} has no MIG mode.", field="fake_gpus")
    return FakeKind(count=count, device=device, mig="mig" in options, share="share" in options)


class _Instance(msgspec.Struct, frozen=True):
    id: int
    profile: str
    start: int
    uuid: str
    compute: bool


class _Gpu(msgspec.Struct, frozen=True):
    mig: bool | None
    last_id: int
    instances: tuple[_Instance, ...]


class _Kept(msgspec.Struct, frozen=True):
    boot: str
    gpus: dict[str, _Gpu]


@dataclass(frozen=True, kw_only=True)
class FakeMachine:
    """The library of such a machine, and the UUIDs of its GPUs that are given in shares."""

    nvml: FakeNvml
    shareable: frozenset[str]


def build(text: str, *, node: str, file: Path, boot: str) -> FakeMachine:
    """The machine of a spec; its GPUs keep their ids, and during one `boot` of the host how they are cut.

    Raises:
        BadInput: if the spec is wrong.
    """
    nvml, shareable = FakeNvml(), set()
    for kind in parse_fake_gpus(text):
        for _ in range(kind.count):
            gpu = _gpu(kind, f"{node}/{len(nvml.gpus)}/{kind.device.name}")
            nvml.gpus.append(gpu)
            if kind.share:
                shareable.add(gpu.uuid)
    _load(nvml, file, boot)
    nvml.on_change = lambda: _save(nvml, file, boot)
    return FakeMachine(nvml=nvml, shareable=frozenset(shareable))


def _gpu(kind: FakeKind, seed: str) -> FakeGpu:
    device = kind.device
    total = device.memory * MIB
    return FakeGpu(
        uuid=f"FAKE-GPU-{uuid.uuid5(_NAMESPACE, seed)}",
        name=f"NVIDIA {re.sub(r'-[0-9]+GB$', '', device.name)}",
        total=total,
        reserved=total // 128,
        mig=kind.mig if device.family else None,
        latency=dict(LATENCY),
    )


def _load(nvml: FakeNvml, file: Path, boot: str) -> None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
        for gpu in nvml.gpus if kept.boot == boot else ():
            family, was = gpu.device.family, kept.gpus.get(gpu.uuid)
            if was is None or family is None or was.mig is None:
                continue
            gpu.mig, gpu.last_id = was.mig, was.last_id
            for one in was.instances:
                gpu.instances[one.id] = FakeInstance(
                    id=one.id, profile=family.by_key[one.profile], start=one.start, uuid=one.uuid, compute=one.compute
                )


def _save(nvml: FakeNvml, file: Path, boot: str) -> None:
    gpus = {
        gpu.uuid: _Gpu(
            gpu.mig,
            gpu.last_id,
            tuple(
                _Instance(one.id, one.profile.key, one.start, one.uuid, one.compute) for one in gpu.instances.values()
            ),
        )
        for gpu in nvml.gpus
    }
    new = file.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(_Kept(boot, gpus)))
    new.replace(file)


def main() -> int:
    """Print what is wrong with a spec; 0 if nothing is."""
    try:
        parse_fake_gpus(sys.argv[1])
    except BadInput as error:
        print(error.detail, file=sys.stderr)  # noqa: T201 - it is what the command is for
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
