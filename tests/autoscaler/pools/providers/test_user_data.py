"""What a machine does at its first start."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

from pilotlight_autoscaler.pools.providers.user_data import user_data
from pilotlight_core.model.api.pools.pool_terms import Ec2Terms
from tests.builders.pools import launch

TERMS = Ec2Terms(
    image="ami-1", subnets={"a": "subnet-1"}, join_url="https://gw.example.com:8470/'; touch /tmp/x '",
    ca_pem="-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----", blob_url="s3://bucket/blobs",
)  # fmt: skip
TOKEN = f"pl_join_{8 * 'a'}_{40 * 'b'}"


def test_it_joins_with_the_token_on_stdin_and_starts_its_agent(tmp_path: Path) -> None:
    """Run with stand-ins for what a machine has: the token is in no command line, and its copies are removed."""
    tools, root = tmp_path / "tools", tmp_path / "root"
    tools.mkdir()
    for folder in ("etc", "var/lib/cloud/instance"):
        (root / folder).mkdir(parents=True)
    copy = root / "var/lib/cloud/instance/user-data.txt"
    copy.write_text(TOKEN)
    stand_in(tools / "curl", 'case "$*" in *api/token*) echo session;; *) echo i-123;; esac')
    stand_in(tools / "pilotlight", f'echo "$@" > {tmp_path}/words; cat > {tmp_path}/stdin')
    stand_in(tools / "systemctl", f'echo "$@" > {tmp_path}/systemctl')
    script = user_data(TERMS, launch(1), TOKEN).replace("/etc/", f"{root}/etc/").replace("/var/", f"{root}/var/")

    subprocess.run(
        ["bash", "-c", script], check=True, env={"PATH": f"{tools}:{os.environ['PATH']}"}, timeout=30, cwd=tmp_path
    )

    words = (tmp_path / "words").read_text()
    assert words.startswith(f"node join {TERMS.join_url} --token=- --node=l4-n1 ")
    assert TOKEN not in words
    assert (tmp_path / "stdin").read_text() == f"{TOKEN}\n"
    assert not copy.exists()
    env = root / "etc/pilotlight/agent.env"
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    assert set(env.read_text().split()) == {
        f"PILOTLIGHT_CREDENTIALS={root}/etc/pilotlight/node.json", "PILOTLIGHT_POOL=l4", "PILOTLIGHT_PROVIDER_ID=i-123",
        f"PILOTLIGHT_CA_FILE={root}/etc/pilotlight/ca.crt", "PILOTLIGHT_BLOB_URL=s3://bucket/blobs",
        "PILOTLIGHT_NOTICES=aws",
    }  # fmt: skip
    assert (tmp_path / "systemctl").read_text() == "enable --now pilotlight-agent\n"


def stand_in(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
