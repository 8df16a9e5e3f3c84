"""What a simulation knows of a function beside its calls: its spec, and how long calls and starts take."""

from __future__ import annotations

from dataclasses import dataclass, field

from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_placement.asks.ask import Ask

DEFAULT_TENANT = "tenant"


@dataclass(frozen=True, kw_only=True)
class SimulatedFunction:
    tenant: str
    spec: FunctionSpec
    load_s: float
    """From the command to start a container until it is ready."""
    duration_s: float
    """How long a call holds its slot on average, where the trace does not say."""
    unpark_s: float = 0.005
    """From the command until a parked container serves again."""
    memory: int = 2**30
    """Bytes of the host that a parked container has."""
    parks: bool = True
    """Whether its containers can be parked: those on GPUs by hooks."""
    priority: str = ""
    """The class of its calls, by which waits are told apart."""
    key: str = field(init=False)
    """Of placement: its tenant and its name."""
    ask: Ask = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.tenant}:{self.name}")
        object.__setattr__(self, "ask", Ask.of(self.spec, function=self.key, tenant=self.tenant))

    @property
    def name(self) -> str:
        return self.spec.name


def spec_of(name: str, **options: object) -> FunctionSpec:
    """The spec of a function of which nothing is known but these options."""
    fields = {"name": name, "module": "simulated", "qualname": name} | options
    return FunctionSpec(methods=(MethodSpec(name="", attribute=name),), **fields)  # type: ignore[arg-type] # by name
