"""The command as an operator runs it: alone, with a platform's addresses, and where something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pilotlight_supervisor.doctor.doctor_command import blob_endpoint, main, read_ask
from pilotlight_supervisor.doctor.finding import HostRole
from tests.builders.certificates import an_authority
from tests.supervisor.doctor.reached_servers import a_bus, serving


def findings_of(text: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(text)["findings"]}


def test_a_host_is_checked_without_a_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of the network is asked, and nothing stays behind."""
    assert main(["--for", "node", "--json", "--state-dir", str(tmp_path / "state")]) == 0

    told = json.loads(capsys.readouterr().out)
    names = {each["name"] for each in told["findings"]}
    assert {"kernel", "control groups", "state folder", "Python", "bubblewrap", "memory limit", "clock kept"} <= names
    assert not {"API", "bus"} & names
    assert told["for"] == "node"
    assert told["health"] in ("ok", "warn")
    assert list(tmp_path.iterdir()) == []


def test_a_gateways_host_reaches_the_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bus and another gateway, with certificates of an authority of its own."""
    authority = an_authority(tmp_path)
    bus = tmp_path / "bus"
    bus.mkdir()
    with serving(tmp_path) as port, a_bus(bus, secure=False) as at:
        arguments = [
            *("--for", "gateway", "--json", "--state-dir", str(tmp_path), "--ca-file", str(authority), "--port", "0"),
            *("--url", f"https://localhost:{port}", "--nats-url", f"nats://me:secret@127.0.0.1:{at}"),
            *("--body-url", f"https://localhost:{port}", "--blob-url", f"file://{tmp_path}/none"),
        ]
        code = main(arguments)

    text = capsys.readouterr().out
    found = findings_of(text)
    good = ("API", "certificate of API", "large bodies", "bus", "bus server", "authorities", "clock of the gateway")
    assert {name: found[name]["health"] for name in good if name != "certificate of API"} == dict.fromkeys(
        [name for name in good if name != "certificate of API"], "ok"
    )
    assert found["certificate of API"]["health"] == "warn"  # it is of ten days
    assert (code, found["blob store"]["health"]) == (1, "fail")
    assert "secret" not in text.replace("secret file", "")


def test_where_namespaces_are_shut_and_state_is_in_memory_it_fails(tmp_path: Path) -> None:
    """In namespaces that have these faults, for real: the cause is named, and what came of it."""
    if os.geteuid():
        pytest.skip("only root makes such namespaces")
    script = (
        'echo 0 > /proc/sys/user/max_user_namespaces && mount -t tmpfs none "$1" && '
        'exec "$2" -m pilotlight_supervisor.doctor.doctor_command --json --state-dir "$1"'
    )
    command = ["unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-c", script, "sh"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [*command, str(tmp_path), sys.executable], capture_output=True, text=True, check=False, env=env, timeout=120
    )

    assert done.returncode == 1, done.stderr
    found = findings_of(done.stdout)
    bad = {name for name, each in found.items() if each["health"] == "fail"}
    assert {"user namespaces", "state folder", "sandbox starts"} <= bad
    assert found["user namespaces"]["todo"] == "sysctl -w user.max_user_namespaces=65536"
    assert found["way out of functions"]["health"] == "warn"


def test_settings_of_processes_are_read_from_the_environment(tmp_path: Path) -> None:
    """Flags win; the file of a node's credentials says where its bus is, and is looked at itself."""
    node = tmp_path / "node.json"
    node.write_text('{"node": "n1", "bus_url": "tls://bus-1:4222"}')
    env = {"PILOTLIGHT_NATS_URL": "", "PILOTLIGHT_BASE": "a=/opt/a,b=/opt/b", "PILOTLIGHT_STATE_DIR": "/var/lib/x"}
    ask, as_json = read_ask(["--credentials", str(node), "--url", "https://gw"], env)

    assert (ask.role, ask.bus_urls, ask.url, as_json) == (HostRole.NODE, ("tls://bus-1:4222",), "https://gw", False)
    assert (ask.bases, ask.state_dir, ask.secret_files) == (("a=/opt/a", "b=/opt/b"), Path("/var/lib/x"), (node,))
    assert read_ask(["--for", "bus", "--nats-url", "nats://a, nats://b"], env)[0].bus_urls == ("nats://a", "nats://b")
    assert read_ask(["--for", "gateway"], env)[0].ports == (8470,)


@pytest.mark.parametrize("port", ["99999", "-1", "x"])
def test_what_is_no_port_ends_it(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a traceback."""
    with pytest.raises(SystemExit) as ended:
        main(["--port", port])

    assert ended.value.code == 2
    assert f"'{port}'" in capsys.readouterr().err


def test_wrong_words_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    """With what there is."""
    with pytest.raises(SystemExit) as ended:
        main(["--for", "toaster"])

    assert ended.value.code == 2
    assert "node" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "endpoint", "found"),
    [
        ("", "", ""),
        ("file:///srv", "", ""),
        ("s3://bucket", "", "https://s3.eu-central-1.amazonaws.com"),
        ("s3://bucket", "http://minio:9000", "http://minio:9000"),
        ("https://store.example.com", "", "https://store.example.com"),
    ],
)
def test_links_to_blobs_lead_to_their_store(url: str, endpoint: str, found: str) -> None:
    """A node without access to a bucket reaches it all the same."""
    assert blob_endpoint(url, endpoint, "eu-central-1") == found


def test_packages_are_those_that_the_role_needs() -> None:
    """A driver of PostgreSQL, and boto3 for a bucket."""
    ask, _ = read_ask(["--for", "gateway", "--ledger-url", "postgresql://db", "--blob-url", "s3://b"], {})

    assert ask.extras == ("server", "aws", "postgres")
    assert read_ask(["--blob-url", "s3://b"], {})[0].extras == ("server",)
