"""One of each process, each on a host of its own: what works on one machine works over the network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.host_fleet import GatewayClient, host_fleet
from tests.system.support.sample_apps import APPS

pytestmark = pytest.mark.system
LARGE = 10_000_000 - 1_000
"""With what is around it, as large as a body may be."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayClient]:
    """Of a platform over five hosts; the agent got the public key of the gateway."""
    with host_fleet(tmp_path_factory.mktemp("hosts"), "node-1") as fleet:
        client = fleet.start_one_of_each("node-1")
        client.deploy(APPS / "calls" / "app.py")
        yield client


def test_calls_streams_and_large_bodies(client: GatewayClient) -> None:
    """A small call, 10 MB both ways, and a stream."""
    assert client.output("calls.echo", value="hello") == "hello"
    large = "x" * LARGE
    assert client.output("calls.echo", value=large) == large
    body, events = {"input": {"upto": 50}}, {"Accept": "text/event-stream"}
    with client.http.stream("POST", "/v1/functions/calls.counts/calls", json=body, headers=events) as stream:
        assert stream.status_code == 200
        assert sum(line == "event: chunk" for line in stream.iter_lines()) == 50


def test_a_job_with_a_large_input_ends(client: GatewayClient) -> None:
    """Its input lies in the store, and goes to the agent as a call's does."""
    value = "y" * 1_000_000
    done = client.ended(client.job("calls.echo", value=value))
    assert (done["state"], done["output"]) == ("succeeded", value)
