"""One fleet over hosts, for all tests of this folder that leave it as they find it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.host_world import HostWorld, host_world


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostWorld]:
    """Three bus servers, two gateways, two controllers, three agents, PostgreSQL and S3, each on a host of its own."""
    with host_world(tmp_path_factory.mktemp("world")) as made:
        yield made
