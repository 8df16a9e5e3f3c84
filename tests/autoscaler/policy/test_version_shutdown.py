"""Versions of which nothing should run: why, and when their containers are told."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_autoscaler.policy.version_shutdown import AGAIN_S, VersionShutdowns, why_shut_down
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.tenancy import TenantRecord
from tests.builders.nodes import container

APP = AppRecord(tenant="acme", app="hello", revision=1, functions={"greet": "ver_1"})
STOPPED = AppRecord(tenant="acme", app="hello", revision=2, functions={"greet": "ver_1"}, stopped=True)
RUN = AppRecord(tenant="acme", app="hello-run-1", revision=1, functions={"greet": "ver_1"}, ends_at=101.0)
ACME = TenantRecord(name="acme", created_at=0.0)
DISABLED = TenantRecord(name="acme", created_at=0.0, disabled=True)


@pytest.mark.parametrize(
    ("app", "tenant", "why"),
    [
        (APP, ACME, ""),
        (APP, None, ""),
        (RUN, ACME, ""),
        (msgspec.structs.replace(RUN, ends_at=100.0), ACME, "its run has ended"),
        (STOPPED, ACME, "its app is stopped"),
        (None, ACME, "its app is gone"),
        (APP, DISABLED, "its tenant is disabled"),
        (STOPPED, DISABLED, "its tenant is disabled"),
    ],
)
def test_a_version_serves_as_long_as_its_app_and_its_tenant_do(
    app: AppRecord | None, tenant: TenantRecord | None, why: str
) -> None:
    """A tenant that is not known yet is no reason."""
    assert why_shut_down(app, tenant, 100.0) == why


def test_each_container_is_told_until_it_is_gone() -> None:
    """Whatever it does, since a command may be lost; those of other versions are left alone."""
    states = (ContainerState.BINDING, ContainerState.LOADING, ContainerState.READY, ContainerState.DRAINING)
    there = [("n1", container(f"c{n}", state=state, running=1)) for n, state in enumerate(states)]
    others = [("n1", container("c8", "ver_2")), ("n1", container("c9", state=ContainerState.GONE))]
    shutdowns = VersionShutdowns()

    def due(at: float) -> list[str]:
        found = shutdowns.due(lambda each: "stopped" if each.version == "ver_1" else "", [*there, *others], at)
        assert {why for _, _, why in found} <= {"stopped"}
        return [each.id for _, each, _ in found]

    assert due(0.0) == ["c0", "c1", "c2", "c3"]
    assert due(AGAIN_S - 0.1) == []
    assert due(AGAIN_S) == ["c0", "c1", "c2", "c3"]
