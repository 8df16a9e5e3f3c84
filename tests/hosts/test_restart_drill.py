"""Every component is restarted in turn under load, as a deployment is rolled out, and no request fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.drill_fleet import GATEWAYS, NODES, NOTICE, DrillFleet, drill_fleet

pytestmark = [pytest.mark.long, pytest.mark.drill, pytest.mark.system, pytest.mark.timeout(240)]


@pytest.fixture
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrillFleet]:
    with drill_fleet(tmp_path_factory.mktemp("hosts"), *NOTICE) as fleet:
        yield fleet


def test_every_component_is_restarted_and_no_request_fails(restarted: DrillFleet) -> None:
    """Duties, agents, the controller, gateways: each ends on SIGTERM, and is started again."""
    with restarted.load() as load:
        load.wait_for_more()

        assert restarted.host(GATEWAYS[0]).end("duties") == 0
        restarted.start_duties()
        load.wait_for_more()

        for node in NODES:
            assert restarted.host(node).end("agent") == 0
            load.wait_for_more()
            restarted.start_agent(node)
            restarted.wait_for_nodes()

        assert restarted.host("controller").end("controller") == 0
        load.wait_for_more()
        restarted.fleet.start_controller()
        load.wait_for_more()

        for name in GATEWAYS:
            assert restarted.host(name).end("gateway") == 0
            load.wait_for_more()
            restarted.fleet.start_gateway(name, *NOTICE)
            load.wait_for_more()
    load.check()
