"""Terraform over `infra/terraform`, with the provider of `schema_provider` in place of AWS's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.infra.manifests import ROOT
from tests.waiting import wait_until
from tools.aws_schema import TERRAFORM

PROGRAM = next((found for name in ("tofu", "terraform") if (found := shutil.which(name))), "")
ADDRESSES = ("registry.terraform.io/hashicorp/aws", "registry.opentofu.org/hashicorp/aws")


class Terraform:
    """The program, in a folder of its own with a copy of the configuration."""

    def __init__(self, folder: Path, process: int, socket: Path) -> None:
        self.folder = folder
        address = {"Network": "unix", "String": str(socket)}
        told = {"Protocol": "grpc", "ProtocolVersion": 6, "Pid": process, "Test": True, "Addr": address}
        self._env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1",
            "TF_REATTACH_PROVIDERS": json.dumps(dict.fromkeys(ADDRESSES, told)),
        }  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *words], cwd=self.folder, env=self._env, capture_output=True, text=True, check=False
        )

    def said(self, *words: str) -> str:
        """Of a command that must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def carried_out(self, **variables: Any) -> dict[str, Any]:
        """All that is there afterwards, as `terraform show` says it."""
        given = [f"-var={name}={written(value)}" for name, value in variables.items()]
        self.said("apply", "-input=false", "-auto-approve", "-no-color", *given)
        found: dict[str, Any] = json.loads(self.said("show", "-json"))["values"]
        return found


def written(value: Any) -> str:
    """A variable as a command line has it."""
    return value if isinstance(value, str) else json.dumps(value)


@contextmanager
def terraform(folder: Path) -> Iterator[Terraform]:
    """Ready to validate."""
    shutil.copytree(TERRAFORM, folder, ignore=shutil.ignore_patterns(".*"))
    socket = folder / "provider"
    command = [sys.executable, "-m", "tests.infra.schema_provider", str(socket)]
    with (folder / "log").open("wb") as log:
        provider = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        wait_until(lambda: provider.poll() is not None or socket.exists(), "the provider serves", 60.0)
        made = Terraform(folder, provider.pid, socket)
        made.said("init", "-input=false", "-no-color")
        yield made
    finally:
        provider.kill()
        provider.wait()


def values_of(made: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Of all objects of a type, by name and index: `agents[l4]`."""
    return {
        each["name"] + (f"[{each['index']}]" if "index" in each else ""): each["values"]
        for each in made["root_module"]["resources"]
        if each["type"] == kind
    }
