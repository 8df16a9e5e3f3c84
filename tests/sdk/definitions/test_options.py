"""The options of `gpu_function`: what each becomes in the spec, and how a wrong value is refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from pilotlight import SLO, App, Function, Measured, Model, OptionError, Spread, Warm
from pilotlight_core.model.fallbacks.fallback import Fallback
from pilotlight_core.model.placing import Over, Purchase
from pilotlight_core.model.spec import FunctionSpec, Isolation, Priority
from pilotlight_core.model.units import GpuAsk

POINT = Measured(gpu="H100", slice="3g", batch=8, throughput=100.0, p95_ms=20.0)


def embed(text: str) -> list[float]:
    return [float(len(text))]


def spec_with(**options: Any) -> FunctionSpec:
    """The spec of a plain function with these options."""
    decorated: Function[..., Any] = App("tests").gpu_function(**options)(embed)
    return decorated.spec


@pytest.mark.parametrize(
    ("options", "field", "expected"),
    [
        ({"gpu": "H100"}, "gpu", (GpuAsk(type="H100"),)),
        ({"gpu": "h100:2"}, "gpu", (GpuAsk(type="H100", count=2),)),
        ({"gpu": ["L40S", "A100-80GB:2", "cpu"]}, "gpu", (GpuAsk("L40S"), GpuAsk("A100-80GB", 2), GpuAsk("CPU"))),
        ({"gpu": None}, "gpu", ()),
        ({"gpu": "any", "vram": "10GiB"}, "vram", 10 * 2**30),
        ({"cpu": 2}, "cpu", 2.0),
        ({"memory": "2GB"}, "memory", 2 * 10**9),
        ({"memory": 512}, "memory", 512 * 2**20),
        ({"shm": "1.5GiB"}, "shm", 3 * 2**29),
        ({"scratch": 64}, "scratch", 64 * 2**20),
        ({"pids": 2048}, "pids", 2048),
        ({"timeout": 5}, "timeout", 5.0),
        ({"startup_timeout": 30}, "startup_timeout", 30.0),
        ({"retries": 2}, "retries", 2),
        ({"min_containers": 1}, "min_containers", 1),
        ({"max_containers": 3}, "max_containers", 3),
        ({"buffer_containers": 1}, "buffer_containers", 1),
        ({"forecast": False}, "forecast", False),
        ({"forecast": True}, "forecast", UNSET),
        ({"scaledown_window": 0}, "scaledown_window", 0.0),
        ({"zero_window": 600}, "zero_window", 600.0),
        ({"warm": [Warm("Mon-Fri 08:00-18:00", 2)]}, "warm", (Warm("Mon-Fri 08:00-18:00", 2, "UTC"),)),
        ({"warm": Warm("00:00-24:00")}, "warm", (Warm("00:00-24:00"),)),
        ({"warm": []}, "warm", UNSET),
        ({"env": {"MODE": "fast"}}, "env", {"MODE": "fast"}),
        ({"max_units": {"images": 4}}, "max_units", {"images": 4}),
        ({"max_units": {}}, "max_units", UNSET),
        ({"network": "api.example.com:443"}, "network", ("api.example.com:443",)),
        (
            {"network": ["*.example.com:443", "tcp://db.example.com:5432"]},
            "network",
            ("*.example.com:443", "tcp://db.example.com:5432"),
        ),
        ({"network": []}, "network", UNSET),
        ({"secrets": None}, "secrets", UNSET),
        ({"secrets": []}, "secrets", UNSET),
        ({"secrets": ["hf-token", "DB"]}, "secrets", {"HF_TOKEN": "hf-token", "DB": "DB"}),
        ({"secrets": {"A": "x", "/run/secrets/b": "x"}}, "secrets", {"A": "x", "/run/secrets/b": "x"}),
        ({"serves": "acme/tiny-1.5"}, "serves", ("acme/tiny-1.5",)),
        ({"serves": ["a", "b:8b"]}, "serves", ("a", "b:8b")),
        ({"isolation": "mig"}, "isolation", Isolation.MIG),
        ({"idempotent": True}, "idempotent", True),
        ({"slo": SLO(p95_ms=300)}, "slo", SLO(p95_ms=300)),
        ({"priority": "batch"}, "priority", Priority.BATCH),
        ({"fallback": "small"}, "fallback", Fallback("small")),
        (
            {"fallback": Fallback("small", classes=["batch"], tiers=["free"])},  # type: ignore[arg-type]
            "fallback",
            Fallback("small", classes=("batch",), tiers=("free",)),
        ),
        ({"name": "other"}, "name", "other"),
    ],
)
def test_every_option_reaches_the_spec(options: dict[str, Any], field: str, expected: object) -> None:
    """The spec has its own units."""
    assert getattr(spec_with(**options), field) == expected


@pytest.mark.parametrize(
    ("option", "value", "field", "expected"),
    [
        ("by_cost", True, "by_cost", True),
        ("spread", "zone", "spread", Spread(over=Over.ZONE)),
        ("spread", Spread(over=Over.NODE, most=2), "spread", Spread(over=Over.NODE, most=2)),
        ("avoid", "jobs.train", "avoid", ("jobs.train",)),
        ("weights", "llama-3-8b", "weights", "llama-3-8b"),
        ("spot", None, "purchase", Purchase.ANY),
        ("spot", True, "purchase", Purchase.SPOT),
        ("spot", False, "purchase", Purchase.ON_DEMAND),
        ("region", "eu", "regions", ("eu",)),
        ("zone", ["a", "b"], "zones", ("a", "b")),
        ("neighbours", True, "neighbours", True),
        ("media", True, "media", True),
        ("model", Model(parameters=7e9), "model", Model(parameters=7e9)),
        ("measured", [POINT], "measured", (POINT,)),
    ],
)
def test_where_it_should_run_is_part_of_the_spec(option: str, value: object, field: str, expected: object) -> None:
    """Placement's names of the fields are used."""
    assert getattr(spec_with(**{"gpu": "any", option: value}).placing, field) == expected


def test_defaults_are_those_of_the_spec() -> None:
    """A bare decorator asks for a CPU slot."""
    spec = App("tests").gpu_function(embed).spec
    assert (spec.gpu, spec.vram, spec.cpu, spec.max_containers, spec.scaledown_window) == ((), None, None, 10, 60.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tiemout": 3}, r"tiemout= is not an option; did you mean timeout=\?"),
        ({"keep_wram": 3}, r"here it is min_containers="),
        ({"zzz": 3}, r"the options are adapters, app, artifacts, avoid, buffer_containers"),
        ({"gpu": "H 100"}, r"gpu='H 100' is not a GPU"),
        ({"gpu": 2}, r"gpu=2: expected"),
        ({"gpu": []}, r"gpu=\[\]: expected"),
        ({"vram": "10GiB"}, r'gpu="any"'),
        ({"gpu": "any", "vram": "lots"}, r"vram='lots'"),
        ({"gpu": "any", "vram": 8}, r'vram=8 is 8 MiB, less than the 600 MiB .* did you mean vram="8GiB"\?'),
        ({"memory": 2}, r'memory=2 is 2 MiB, less than the 64 MiB .* did you mean memory="2GiB"\?'),
        ({"cpu": (1, 2)}, r"not a \(request, limit\) pair"),
        ({"cpu": True}, r"cpu=True: expected a number"),
        ({"cpu": 0}, r"cpu=0.0 is out of range"),
        ({"memory": (1, 2)}, r"not a \(request, limit\) pair"),
        ({"memory": True}, r"memory=True"),
        ({"shm": "lots"}, r"shm='lots' is not an amount of memory"),
        ({"scratch": (1, 2)}, r"scratch=\(1, 2\): expected one amount"),
        ({"pids": "many"}, r"pids='many': expected a whole number"),
        ({"timeout": 0}, r"timeout=0.0 is out of range"),
        ({"timeout": None}, r"timeout=None: expected a number"),
        ({"retries": 1.5}, r"retries=1.5: expected a whole number"),
        ({"retries": 11}, r"retries=11 is out of range"),
        ({"min_containers": 3, "max_containers": 2}, r"min_containers=3"),
        ({"warm": "Mon-Fri 08:00-18:00"}, r'warm=.*: expected a list of Warm\("Mon-Fri 08:00-18:00", containers=2'),
        ({"warm": [Warm("Mon-Fri 8-18")]}, r"embed: warm: 'Mon-Fri 8-18' cannot be read: expected days and times"),
        ({"warm": [Warm("08:00-18:00", tz="CEST")]}, r"warm: there is no time zone 'CEST'"),
        ({"warm": [Warm("08:00-18:00", 11)]}, r"containers=11: expected at most max_containers=10"),
        ({"warm": [Warm("08:00-18:00", "two")]}, r"Expected `int`"),  # type: ignore[arg-type]
        ({"env": ["A=1"]}, r"expected a dict of strings"),
        ({"network": "https://api.example.com"}, r"network='https://api.example.com': .*TLS has no scheme here"),
        ({"network": ["10.0.0.1:443"]}, r"name the host, not an address of it"),
        ({"network": 443}, r"network=443: expected a host and a port"),
        ({"max_units": 4}, r"max_units=4: expected a dict of whole numbers"),
        ({"max_units": {"tokens": 4}}, r"max_units={…}: there is no unit 'tokens'"),
        ({"env": {"A": 1}}, r"values that are strings"),
        ({"env": {"1A": "x"}}, r"names like MODE"),
        ({"env": {"PILOTLIGHT_URL": "x"}}, r"belong to the platform"),
        ({"serves": "acme//tiny"}, r"serves='acme//tiny': .* is no name of a model"),
        ({"serves": []}, r"serves=\[\]: expected a name such as"),
        ({"isolation": "full"}, r'"shared" or "mig" or "exclusive"'),
        ({"idempotent": 1}, r"True or False"),
        ({"slo": {"p95_ms": 1}}, r"expected SLO\("),
        ({"slo": SLO(p95_ms=0)}, r"more than 0"),
        ({"priority": "urgent"}, r'"interactive" or "standard" or "batch"'),
        ({"fallback": 3}, r"fallback=3: expected the name of a function of the app"),
        ({"fallback": "embed"}, r"fallback: it names the function itself"),
        ({"fallback": "a.b"}, r"fallback 'a\.b' is not a name"),
        ({"fallback": Fallback("small", classes=("urgent",))}, r"there is no class 'urgent'"),
        ({"fallback": Fallback("small", tiers=(3,))}, r"Expected `str`"),  # type: ignore[arg-type]
        ({"spread": "rack"}, r'spread=\'rack\': expected "node", "zone"'),
        ({"spread": Spread(over=Over.NODE, most=0)}, r"spread= allows 0 containers in one node"),
        ({"model": 7e9}, r"model=.*expected Model\("),
        ({"model": Model(parameters=7e9)}, r"model= is memory of a GPU"),
        ({"gpu": "any", "vram": "8GiB", "model": Model(parameters=7e9)}, r"model= and vram= both say"),
        ({"gpu": "any", "model": Model(parameters=7e9, precision="fp3")}, r"model= precision='fp3' is not known"),
        ({"gpu": "any", "model": Model(parameters=0)}, r"model= parameters=0.0 is out of range"),
        ({"gpu": "any", "model": Model(parameters=7e9, layers=-1)}, r"model= layers=-1 is out of range"),
        ({"gpu": "any", "model": Model(parameters=7e9, layers=32)}, r"KV cache needs kv_heads= and head_size="),
        ({"gpu": "any", "model": Model(parameters=7e9, activations=-1)}, r"activations=-1 is out of range"),
        ({"gpu": "any", "model": Model(parameters="7B")}, r"Expected `float`"),  # type: ignore[arg-type]
        ({"measured": [3]}, r"measured=\[3\]: expected a list of Measured"),
        ({"measured": [Measured(gpu="T4", batch=0, throughput=1, p95_ms=1)]}, r"expected batch=, throughput= and"),
        ({"measured": [Measured(gpu="T 4", batch=1, throughput=1, p95_ms=1)]}, r'expected gpu="H100-80GB"'),
        ({"measured": [Measured(gpu="T4", batch=1, throughput=1e-320, p95_ms=1)]}, r"throughput= of at least 1e-06"),
        ({"weights": ""}, r"weights='': expected a name"),
        ({"weights": "a\nb"}, r"weights= expected a name of at most 200"),
        ({"avoid": "other"}, r"avoid= names 'other': expected functions of yours, as app\.function"),
        ({"spot": "yes"}, r"spot='yes': expected True or False"),
        ({"region": []}, r"region=\[\]: expected a name, or a list"),
        ({"region": "eu north"}, r"region 'eu north' is not a name"),
        ({"zone": ["a", "a"]}, r"zone= names 2: expected at most 32, each once"),
        ({"neighbours": 1}, r"neighbours=1: expected True or False"),
        ({"media": "h264"}, r"media='h264': expected True or False"),
        ({"by_cost": "yes"}, r"by_cost='yes': expected True or False"),
        ({"name": "a.b"}, r"name 'a\.b' is not a name"),
        ({"app": 3}, r"app=3: expected a name or an App"),
    ],
)
def test_a_bad_value_is_refused_with_the_expected_ones(options: dict[str, Any], message: str) -> None:
    """The error names the option."""
    with pytest.raises(OptionError, match=message):
        spec_with(**options)
