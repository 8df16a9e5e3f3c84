"""What tenant code can reach from inside, and what the host sees of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pilotlight_runtime.sandbox.sandbox_spec import BASE_ENV
from tests.system.apps.inside.app import SECRETS
from tests.system.support.events import Told, events_of
from tests.system.support.platform import Platform
from tests.system.support.processes import descendants, host_uid
from tests.system.support.sample_apps import APPS, deployed

OUT_OF_REACH = {"ECONNREFUSED", "ENETUNREACH"}
NOT_THERE = {"ENOENT", "EACCES", "ENOTDIR"}
KNOWN_VARIABLES = {
    *BASE_ENV, "CUDA_CACHE_PATH", "LC_CTYPE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OWN", "PILOTLIGHT_MODELS",
    "PL_APP", "PWD", "TOKENIZERS_PARALLELISM", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _inside(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "inside" / "app.py"):
        yield


@pytest.fixture(scope="module")
def seen(platform: Platform) -> dict[str, Any]:
    """What a function sees."""
    looked: dict[str, Any] = platform.output("inside.looks")
    return looked


def tried(platform: Platform, **attempts: Any) -> dict[str, str]:
    """How attempts from inside end."""
    nothing: dict[str, Any] = {"connects": [], "writes": [], "reads": [], "kills": []}
    told: dict[str, str] = platform.output("inside.tries", **(nothing | attempts))
    return told


def test_there_is_no_network(platform: Platform, seen: dict[str, Any]) -> None:
    """Neither the platform's own ports on the loopback nor anything beyond can be reached."""
    ports = [urlsplit(url).port for url in (platform.url, platform.nats_url)]
    told = tried(
        platform, connects=[*(("127.0.0.1", port) for port in ports), ("169.254.169.254", 80), ("1.1.1.1", 53)]
    )

    assert seen["interfaces"] == ["lo"]
    assert set(told.values()) <= OUT_OF_REACH, told


def test_the_root_is_read_only(platform: Platform) -> None:
    """But for /tmp, nothing can be written; least of all the code."""
    places = ["/", "/app", "/etc", "/usr", "/dev", "/run", str(Path(os.__file__).parent)]

    told = tried(platform, writes=[*places, "/tmp"])

    assert told.pop("write /tmp") == "done"
    assert set(told.values()) == {"EROFS"}, told


def test_other_processes_are_out_of_sight(platform: Platform, seen: dict[str, Any]) -> None:
    """Its own few are all it sees; the agent's pid on the host means nothing to it."""
    assert len(seen["processes"]) <= 4
    assert all(int(pid) < 100 for pid in seen["processes"])
    assert set(tried(platform, kills=[max(platform.pids.values())]).values()) == {"ESRCH"}


def test_nothing_of_the_platform_is_in_its_environment(platform: Platform, seen: dict[str, Any]) -> None:
    """The author's variables and a handful of plain ones; no key, no address, no descriptor but its socket."""
    env = seen["env"]

    assert env["OWN"] == "mine"
    assert set(env) <= KNOWN_VARIABLES, set(env) - KNOWN_VARIABLES
    assert not [
        value for value in env.values() if platform.key in value or "nats" in value or str(platform.state) in value
    ]
    kinds = {target.partition(":")[0] for target in seen["descriptors"]}
    assert kinds <= {"pipe", "socket", "/dev/null", "anon_inode"}, seen["descriptors"]
    assert sum(target.startswith("socket:") for target in seen["descriptors"]) == 1


def test_files_of_the_platform_are_not_there(platform: Platform) -> None:
    """Neither the blob store, the keys and the ledger, nor other containers' code, by whatever path."""
    state = platform.state.resolve()
    paths = [state, state / "blobs", state / "keys", state / "ledger.sqlite", state / "node", platform.client_file]
    sockets = list((state / "links").iterdir())  # over which the agent and the gateway link
    assert sockets
    through = [Path("/proc/1/root"), Path(f"/proc/{platform.pids['agent']}/root")]

    told = tried(
        platform,
        reads=[*map(str, [*paths, *sockets]), *(f"{root}{state}" for root in through), "/etc/shadow", "/root/.ssh"],
    )

    assert set(told.values()) <= NOT_THERE, told


def test_two_containers_have_nothing_in_common(platform: Platform) -> None:
    """Each has a uid of its own on the host, which is not root's, and a /tmp that the other does not see."""
    with closing(events_of(platform, "inside.keeps", secret="a")) as one:
        assert first_chunk(one) == ["a"]
        with closing(events_of(platform, "inside.keeps", secret="b")) as other:
            assert first_chunk(other) == ["b"]
            holders = holders_of(platform, "a", "b")
            uids = {name: host_uid(pid) for name, pid in holders.items()}

    assert uids.keys() == {"a", "b"}
    assert None not in uids.values()
    assert 0 not in uids.values()
    assert len(set(uids.values())) == 2


def first_chunk(events: Iterator[Told]) -> Any:
    """The value of the first chunk of a stream."""
    return next(event.data["value"] for event in events if event.name == "chunk")


def holders_of(platform: Platform, *secrets: str) -> dict[str, int]:
    """The process in whose /tmp each secret lies, as root on the host sees it."""
    return {
        secret: pid
        for pid in descendants(platform.pids["agent"])
        for secret in secrets
        if Path(f"/proc/{pid}/root{SECRETS}/{secret}").exists()
    }


def test_a_function_speaks_to_no_other_platform(platform: Platform) -> None:
    """It has no network: it is told so, rather than left to wait for a connection."""
    answer = platform.call("inside.calls_another")

    assert answer.json()["code"] == "function_raised"
    assert "NestedRefused: options(client=…): a function calls those of its own platform." in answer.json()["detail"]
