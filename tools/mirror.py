"""Hold tests to the tree: `python -m tools.mirror`.

`gateway/pilotlight_gateway/tenancy/api_keys.py` is tested by `tests/gateway/tenancy/test_api_keys.py`; a longer name
such as `test_api_keys_revoked.py` beside it may hold more. Every module with behaviour has such a file, or a line in
`ELSEWHERE` that says where it is tested and why there. Behaviour is a function or method with a statement of its own:
records, constants, errors, and protocols have none. What is in `ELSEWHERE` without need fails too.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.syntax import inner, parsed, walk

SOURCE = ("core", "sdk", "placement", "engine", "runtime", "autoscaler", "gateway", "supervisor")
NO_MODULES = ("__init__.py", "__main__.py")
MIN_STATEMENTS = 4
"""A module whose functions have fewer statements in all only passes something on."""

ELSEWHERE: dict[str, str] = {
    "engine/pilotlight_engine/engine_port.py": "scheduling/test_scheduled_engine.py: by an engine that keeps it",
    "engine/pilotlight_engine/vllm/vllm_child.py": "test_vllm_engine.py: it runs in the process that each test starts",
    "gateway/pilotlight_gateway/batches/batch_port.py": "test_bus_batches.py: one contract for the store and its fake",
    "gateway/pilotlight_gateway/http/endpoints/documents.py": "protocol/test_openapi.py, test_function_openapi.py",
    "gateway/pilotlight_gateway/gateway_objects.py": "tests/gateway/test_serving.py: what a gateway is made of",
    "gateway/pilotlight_gateway/supply/gateway_supply.py": "tests/gateway/test_serving.py: what a gateway is made of",
    "gateway/pilotlight_gateway/http_wiring.py": "tests/gateway/http: `World` wires every application with it",
    "gateway/pilotlight_gateway/idempotency/memory_key_records.py": "test_keyed_calls.py: every test runs on it",
    "gateway/pilotlight_gateway/storage_quota/memory_quota.py": "test_bus_quota.py: one contract for both",
    "gateway/pilotlight_gateway/tenancy/registry_port.py": "every test of `World` runs on the fake",
    "gateway/pilotlight_gateway/calls/in_flight_call.py": "test_live_calls.py: the calls that implement it",
    "gateway/pilotlight_gateway/calls/call_fake.py": (
        "tests/gateway/http/endpoints: it does what a test's script says, and each test reads the result"
    ),
    "gateway/pilotlight_gateway/jobs/memory_jobs.py": (
        "tests/gateway/jobs/test_bus_jobs.py: it keeps the contract that the store on the bus keeps"
    ),
    "gateway/pilotlight_gateway/ledger/migrations/versions/r0001_usage_and_receipts.py": (
        "tests/gateway/ledger/test_ledger_upgrade.py: a revision is right if it makes the declared tables"
    ),
    "gateway/pilotlight_gateway/ledger/migrations/versions/r0002_quarantine.py": (
        "tests/gateway/ledger/test_ledger_upgrade.py: a revision is right if it makes the declared tables"
    ),
    "gateway/pilotlight_gateway/ledger/migrations/versions/r0005_facts.py": (
        "tests/gateway/ledger/test_ledger_upgrade.py: a revision is right if it makes the declared tables"
    ),
    "gateway/pilotlight_gateway/ledger/migrations/versions/r0007_host.py": (
        "tests/gateway/ledger/test_ledger_upgrade.py: a revision is right if it makes the declared tables"
    ),
    "gateway/pilotlight_gateway/ledger/migrations/versions/r0008_narrow_receipts.py": (
        "tests/gateway/ledger/test_call_receipts.py: it is right if receipts say what they said before"
    ),
    "gateway/pilotlight_gateway/ledger/migrations/versions/r0009_who_pays.py": (
        "tests/gateway/ledger/test_ledger_upgrade.py upgrades a ledger of before by it"
    ),
    "gateway/pilotlight_gateway/ledger/migrations/versions/r0013_discounts.py": (
        "tests/gateway/ledger/test_ledger_upgrade.py upgrades a ledger of before by it, in either database"
    ),
    "gateway/pilotlight_gateway/webhooks/http_sender_fake.py": (
        "tests/gateway/duties/test_webhook_duty.py: it does what a test's script says, and each test reads the result"
    ),
    "gateway/pilotlight_gateway/webhooks/webhook_port.py": (
        "tests/gateway/webhooks/test_bus_webhooks.py: it keeps the contract that the one on the bus keeps"
    ),
    "runtime/pilotlight_runtime/devices/fake/fake_gpu.py": (
        "tests/runtime/devices/nvidia/test_mig.py: its rules for cutting are held against the driver's"
    ),
    "runtime/pilotlight_runtime/devices/fake/fake_mig.py": (
        "tests/runtime/devices/nvidia/test_mig.py: it keeps the contract that the driver keeps"
    ),
    "runtime/pilotlight_runtime/devices/fake/fake_nvml.py": (
        "tests/runtime/devices/nvidia/test_nvml_port.py: it keeps the contract that the driver's library keeps"
    ),
    "runtime/pilotlight_runtime/sandbox/fake_launcher.py": (
        "tests/runtime/sandbox/test_launchers.py: it keeps the contract that the launchers for real keep"
    ),
}
"""Module -> where it is tested instead, and why."""


def mirror_of(module: Path) -> Path:
    """Where the test of a module belongs: `core/pilotlight_core/bus/kv.py` -> `tests/core/bus/test_kv.py`."""
    return Path("tests", module.parts[0], *module.parts[2:-1], f"test_{module.name}")


def statements(tree: ast.AST) -> int:
    """How many statements the functions below `tree` have, docstrings, `...` and those of protocols apart."""
    total = 0
    for node in inner(tree):
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.dump(base) for base in node.bases):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            total += sum(isinstance(n, ast.stmt) and not _says_nothing(n) for n in walk(node)) - 1
        else:
            total += statements(node)
    return total


def _says_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def with_behaviour(root: Path) -> list[Path]:
    """The product's modules that do something, relative to `root`."""
    paths = (path for folder in SOURCE for path in sorted((root / folder).rglob("*.py")) if path.name not in NO_MODULES)
    return [path.relative_to(root) for path in paths if statements(parsed(path)) >= MIN_STATEMENTS]


def faults(modules: Iterable[Path], root: Path, elsewhere: Mapping[str, str]) -> list[str]:
    """A sentence for each module without a test of its own, and for each line of `elsewhere` that is not needed."""
    missing = {str(module) for module in modules if not (root / mirror_of(module)).exists()}
    wrong = [f"{name}: no {mirror_of(Path(name))}" for name in sorted(missing) if name not in elsewhere]
    return wrong + [f"{name}: needs no line in ELSEWHERE" for name in sorted(elsewhere) if name not in missing]


def main() -> int:
    """Print how many modules are mirrored and which are not; 1 if one is missing."""
    root = Path(__file__).parents[1]
    modules = with_behaviour(root)
    mirrored = sum((root / mirror_of(module)).exists() for module in modules)
    print(f"mirror     {mirrored} of {len(modules)} modules with behaviour have a test, {len(ELSEWHERE)} say why not")
    wrong = faults(modules, root, ELSEWHERE)
    for sentence in wrong:
        print(f"error      {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
