"""The options of `gpu_function`, and their fields in a FunctionSpec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from pilotlight.definitions.artifact_options import Artifact
from pilotlight.definitions.engine_options import EngineOption
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.hints.migration_hints import OPTION_HINTS, explain_unknown
from pilotlight.definitions.rehearsal_options import Example
from pilotlight.definitions.schedules import Cron, Period
from pilotlight_core.model.calendar.warm_windows import Warm
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.fallbacks.fallback import Fallback
from pilotlight_core.model.ids import check_name, tags_fault
from pilotlight_core.model.networks.network_targets import targets_fault
from pilotlight_core.model.placing import CONTEXT_BYTES, Measured, Model, Over, Placing, Purchase, Spread
from pilotlight_core.model.served.model_names import model_names_fault
from pilotlight_core.model.spec import LEAST_MEMORY, LEAST_TMPFS, SLO, Isolation, Priority
from pilotlight_core.model.streams.resuming import Resumable
from pilotlight_core.model.units import GpuAsk, most_units_fault, parse_gpu, parse_memory

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED_ENV = ("PL_", "PILOTLIGHT_")
LEAST = {
    "vram": (CONTEXT_BYTES, "the driver and its libraries take in each process"),
    "memory": (LEAST_MEMORY, "a container must have"),
    "shm": (LEAST_TMPFS, "it must have"),
    "scratch": (LEAST_TMPFS, "it must have"),
}
"""The fewest bytes of each, and what needs them: an int below was hardly meant as MiB."""


class NamedApp(Protocol):
    """An App, for `app=`."""

    name: str


class UpstreamOption(Protocol):
    """An `Upstream`."""

    @property
    def target(self) -> str: ...


class Options(TypedDict, total=False):
    """The options that `gpu_function` explains."""

    gpu: str | Sequence[str] | None
    vram: str | int | None
    cpu: float
    memory: str | int
    shm: str | int
    scratch: str | int
    pids: int
    timeout: float
    startup_timeout: float
    retries: int
    min_containers: int
    max_containers: int
    buffer_containers: int
    scaledown_window: float
    zero_window: float
    forecast: bool
    warm: Sequence[Warm]
    env: Mapping[str, str]
    tags: Mapping[str, str]
    max_units: Mapping[str, int]
    artifacts: Sequence[Artifact]
    schedule: Cron | Period | None
    network: str | Sequence[str]
    secrets: Mapping[str, str] | Sequence[str] | None
    warmup: Sequence[Mapping[str, Any] | Sequence[Mapping[str, Any]] | Example]
    check: Example
    check_every: float
    check_timeout: float
    isolation: Literal["shared", "mig", "exclusive"]
    idempotent: bool
    resumable: bool | Resumable
    fallback: str | Fallback
    slo: SLO
    priority: Literal["interactive", "standard", "batch"]
    model: Model
    by_cost: bool
    measured: Sequence[Measured]
    weights: str | Sequence[str]
    serves: str | Sequence[str]
    spread: Literal["node", "zone"] | Spread
    avoid: str | Sequence[str]
    spot: bool | None
    region: str | Sequence[str]
    zone: str | Sequence[str]
    neighbours: bool
    media: bool
    upstream: UpstreamOption
    engine: EngineOption
    adapters: Sequence[str]
    name: str
    app: str | NamedApp


KNOWN = frozenset(Options.__annotations__)


def spec_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as fields of FunctionSpec.

    Raises:
        OptionError: naming the option and what it expects.
    """
    for name in options:
        if name not in KNOWN:
            raise OptionError(explain_unknown(name, KNOWN, OPTION_HINTS), field=name)
    fields = _read(READERS, options)
    if placing := _read(PLACING, options):
        fields["placing"] = Placing(**{PLACING_FIELDS.get(name, name): value for name, value in placing.items()})
    if fields.get("vram") and not fields.get("gpu"):
        raise OptionError('vram= is memory of a GPU: say which with gpu=, or gpu="any".', field="vram")
    return fields


def _read(readers: Mapping[str, Callable[[str, Any], Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name in readers:
            try:
                fields[name] = readers[name](name, value)
            except BadInput as error:
                raise OptionError(error.detail, field=name) from error
    return fields


def function_name(options: Mapping[str, Any], own: str) -> str:
    """Return the name of a deployed function; `own` is the one in its code.

    Raises:
        OptionError: if it is not a legal name.
    """
    try:
        return check_name(options.get("name", own), "name")
    except BadInput as error:
        raise OptionError(error.detail, field="name") from error


def _expected(name: str, value: Any, what: str) -> OptionError:
    return OptionError(f"{name}={value!r}: expected {what}.", field=name)


def _gpu(name: str, value: Any) -> tuple[GpuAsk, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (parse_gpu(value),)
    if not isinstance(value, list | tuple) or not value:
        raise _expected(name, value, '"H100", "H100:2", "any", or a list of these in order of preference')
    return tuple(parse_gpu(choice) for choice in value)


def _memory(name: str, value: Any) -> int:
    if isinstance(value, tuple):
        raise _expected(name, value, "one amount, not a (request, limit) pair")
    found = parse_memory(value, name)
    least, why = LEAST[name]
    if isinstance(value, int) and found < least:
        raise OptionError(
            f"{name}={value} is {value} MiB, less than the {least >> 20} MiB that {why}: "
            f'did you mean {name}="{value}GiB"?',
            field=name,
        )
    return found


def _vram(name: str, value: Any) -> int | None:
    return None if value is None else _memory(name, value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        more = ", not a (request, limit) pair" if isinstance(value, tuple) else ""
        raise _expected(name, value, f"a number{more}")
    return float(value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _expected(name, value, "a whole number")
    return value


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _expected(name, value, "True or False")
    return value


def _truth_or_unset(name: str, value: Any) -> bool | UnsetType:
    """Return UNSET for True, the default, which platforms of release 0.1 do not know."""
    return UNSET if _truth(name, value) else False


def _env(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _expected(name, value, "a dict of strings")
    for key, text in value.items():
        if not isinstance(key, str) or not ENV_NAME.fullmatch(key) or not isinstance(text, str) or "\0" in text:
            raise _expected(name, {key: text}, "names like MODE and values that are strings")
        if key.startswith(RESERVED_ENV):
            raise OptionError(f"env={{{key!r}: …}}: names with {' or '.join(RESERVED_ENV)} belong to the platform.")
    return dict(value)


def _secrets(name: str, value: Any) -> dict[str, str] | UnsetType:
    if value is None:
        return UNSET
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        value = {each.upper().replace("-", "_"): each for each in value}
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise _expected(name, value, 'a dict such as {"HF_TOKEN": "hf-token"}, or a list of names')
    return dict(value) or UNSET


def _tags(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _expected(name, value, 'a dict of strings, such as {"team": "search"}')
    if why := tags_fault(value):
        raise OptionError(f"{name}={{…}}: {why}.", field=name)
    return dict(value)


def _max_units(name: str, value: Any) -> dict[str, int] | UnsetType:
    if not isinstance(value, Mapping):
        raise _expected(name, value, 'a dict of whole numbers, such as {"completion_tokens": 4096}')
    if why := most_units_fault(value):
        raise OptionError(f"{name}={{…}}: {why}.", field=name)
    return {str(unit): count for unit, count in value.items()} or UNSET


def _network(name: str, value: Any) -> tuple[str, ...] | UnsetType:
    targets = (value,) if isinstance(value, str) else value
    if why := targets_fault(targets):
        raise OptionError(f"{name}={value!r}: {why}.", field=name)
    return tuple(targets) or UNSET


def _warm(name: str, value: Any) -> tuple[Warm, ...] | UnsetType:
    windows = (value,) if isinstance(value, Warm) else value
    if not isinstance(windows, list | tuple) or not all(isinstance(window, Warm) for window in windows):
        raise _expected(name, value, 'a list of Warm("Mon-Fri 08:00-18:00", containers=2, tz="Europe/Berlin")')
    return tuple(_checked(name, window) for window in windows) or UNSET


def _resumable(name: str, value: Any) -> Resumable | UnsetType:
    if isinstance(value, Resumable):
        return _checked(name, value)
    if not isinstance(value, bool):
        raise _expected(name, value, "True, False or Resumable(resume_s=30, migrations=2)")
    return Resumable() if value else UNSET


def _serves(name: str, value: Any) -> tuple[str, ...] | UnsetType:
    names = (value,) if isinstance(value, str) else value
    if why := model_names_fault(names):
        raise OptionError(f"{name}={value!r}: {why}.", field=name)
    return tuple(names)


def _fallback(name: str, value: Any) -> Fallback:
    fallback = Fallback(value) if isinstance(value, str) else value
    if not isinstance(fallback, Fallback):
        raise _expected(name, value, 'the name of a function of the app, or Fallback("small", classes=["batch"])')
    return _checked(name, fallback)


def _choice(kind: type[Isolation | Priority]) -> Callable[[str, Any], Isolation | Priority]:
    def read(name: str, value: Any) -> Isolation | Priority:
        try:
            return kind(value)
        except ValueError:
            raise _expected(name, value, " or ".join(f'"{member.value}"' for member in kind)) from None

    return read


def _slo(name: str, value: Any) -> SLO:
    if not isinstance(value, SLO):
        raise _expected(name, value, "SLO(p95_ms=), or of an engine SLO(ttft_ms=, itl_ms=)")
    for level in value.__struct_fields__:
        target = getattr(value, level)
        if target is not None and (isinstance(target, bool) or not isinstance(target, int | float) or target <= 0):
            raise _expected(f"SLO({level}", target, "milliseconds, more than 0")
    return value


READERS: dict[str, Callable[[str, Any], Any]] = {
    "gpu": _gpu,
    "vram": _vram,
    "cpu": _number,
    "memory": _memory,
    "shm": _memory,
    "scratch": _memory,
    "pids": _whole,
    "timeout": _number,
    "startup_timeout": _number,
    "retries": _whole,
    "min_containers": _whole,
    "max_containers": _whole,
    "buffer_containers": _whole,
    "scaledown_window": _number,
    "zero_window": _number,
    "forecast": _truth_or_unset,
    "warm": _warm,
    "env": _env,
    "secrets": _secrets,
    "tags": _tags,
    "max_units": _max_units,
    "network": _network,
    "isolation": _choice(Isolation),
    "idempotent": _truth,
    "resumable": _resumable,
    "serves": _serves,
    "fallback": _fallback,
    "slo": _slo,
    "priority": _choice(Priority),
}


def _one_or_more(name: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(each, str) and each for each in names):
        raise _expected(name, value, "a name, or a list of names")
    return tuple(names)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _expected(name, value, "a name")
    return value


def _weights(name: str, value: Any) -> str:
    """Return the text that stands for weights where nodes are preferred; a list is of those that were pushed."""
    return _text(name, value) if isinstance(value, str) else ""


def _model(name: str, value: Any) -> Model:
    if not isinstance(value, Model):
        raise _expected(name, value, "Model(parameters=, precision=, layers=, …)")
    return _checked(name, value)


def _measured(name: str, value: Any) -> tuple[Measured, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(point, Measured) for point in value):
        raise _expected(name, value, 'a list of Measured(gpu="H100", slice="3g", batch=, throughput=, p95_ms=)')
    return tuple(_checked(name, point) for point in value)


def _spread(name: str, value: Any) -> Spread:
    try:
        spread = value if isinstance(value, Spread) else Spread(over=Over(value))
        return _checked(name, msgspec.structs.replace(spread, over=Over(spread.over)))
    except ValueError:
        raise _expected(name, value, '"node", "zone", or Spread(over=, most=)') from None


def _spot(name: str, value: Any) -> Purchase:
    if value is None:
        return Purchase.ANY
    return Purchase.SPOT if _truth(name, value) else Purchase.ON_DEMAND


Struct = TypeVar("Struct", bound=msgspec.Struct)


def _checked(name: str, value: Struct) -> Struct:
    """Return the value with fields of the declared types, which constructors do not check."""
    try:
        return msgspec.convert(msgspec.to_builtins(value), type(value))
    except (msgspec.ValidationError, TypeError) as error:
        raise OptionError(f"{name}={value!r}: {error}.", field=name) from None


PLACING: dict[str, Callable[[str, Any], Any]] = {
    "model": _model,
    "by_cost": _truth,
    "measured": _measured,
    "weights": _weights,
    "spread": _spread,
    "avoid": _one_or_more,
    "spot": _spot,
    "region": _one_or_more,
    "zone": _one_or_more,
    "neighbours": _truth,
    "media": _truth,
}
PLACING_FIELDS = {"spot": "purchase", "region": "regions", "zone": "zones"}
"""Options whose field has another name."""
