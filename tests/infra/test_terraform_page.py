"""docs/terraform.md: its blocks run, and its values are taken."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import hcl2
import kubernetes_validate
import psycopg
import pytest
import yaml

from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_store import Ledger
from tests.infra.manifests import ROOT, overlay, workloads
from tests.infra.pages import block
from tests.infra.terraforming import PROGRAM, terraform
from tests.infra.test_manifests import VERSIONS
from tools.aws_schema import TERRAFORM, configuration

NAME = "terraform.md"
PAGE = (ROOT / "docs" / NAME).read_text()


def test_a_nodes_token_has_its_place(tmp_path: Path) -> None:
    """One for each node with an agent, under the name that its pod looks for; of a spot node it says so."""
    found = [
        ("ip-10-42-33-5.eu-central-1.compute.internal", "eu-central-1a", "l4", "ON_DEMAND"),
        ("ip-10-42-64-9.eu-central-1.compute.internal", "eu-central-1b", "l4-spot", "SPOT"),
    ]
    names = ("topology.kubernetes.io/zone", "pilotlight.dev/pool", "eks.amazonaws.com/capacityType")
    items = [{"metadata": {"name": node, "labels": dict(zip(names, said, strict=True))}} for node, *said in found]
    (tmp_path / "nodes.json").write_text(json.dumps({"items": items}))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (
        (
            "kubectl",
            f'[ "$1" != get ] || cat {tmp_path}/nodes.json; [ "$1" != create ] || ls tokens > {tmp_path}/created',
        ),
        ("pilotlight", 'echo "$*"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", block(NAME, "join.sh")], cwd=tmp_path, env=env, check=True)

    first, second = sorted((tmp_path / "tokens").iterdir())
    assert first.name == found[0][0].replace(".", "-")
    assert first.read_text() == f"node token --node {first.name} --zone eu-central-1a --pool l4\n"
    assert second.read_text() == f"node token --node {second.name} --zone eu-central-1b --pool l4-spot --spot\n"
    assert (tmp_path / "created").read_text().split() == [first.name, second.name]


def test_the_ledgers_user_makes_its_tables(new_database: Callable[[], str]) -> None:
    """It owns the database, made so by an administrator who is no superuser, as AWS's is not."""
    url = new_database()
    name = re.search(r"@/(\w+)", url)
    assert name is not None
    script = block(NAME, "ledger.sql")
    for told, here in (("to pilotlight", f"to admin_{name[1]}"), ("database pilotlight", f"database {name[1]}")):
        assert told in script
        script = script.replace(told, here)
    script = script.replace("role ledger", f"role own_{name[1]}").replace("grant ledger", f"grant own_{name[1]}")
    script = script.replace("owner to ledger", f"owner to own_{name[1]}")
    with psycopg.connect(url, autocommit=True) as root:
        root.execute(f"create role admin_{name[1]} login createrole createdb".encode())
        root.execute(f"alter database {name[1]} owner to admin_{name[1]}".encode())
    with psycopg.connect(url.replace("pilotlight@", f"admin_{name[1]}@"), autocommit=True) as administrator:
        administrator.execute(script.encode())
    of_ledger = url.replace("pilotlight@", f"own_{name[1]}@")
    Ledger(of_ledger, load_prices()).close()
    with psycopg.connect(of_ledger, autocommit=True) as own:
        found = own.execute("select distinct tableowner from pg_tables where schemaname = 'public'").fetchall()
    assert found == [(f"own_{name[1]}",)]


def test_the_runtime_class_is_the_overlays() -> None:
    made = yaml.safe_load(block(NAME, "nvidia.yaml"))
    kubernetes_validate.validate(made, VERSIONS[1], strict=True)
    assert made["metadata"]["name"] == workloads(overlay("gpu"))["agent"].pod["runtimeClassName"]


def test_variables_of_the_page_are_those_of_the_configuration() -> None:
    """Each that it sets exists; each without a default is set; and each file of the table is there."""
    told = {name.strip('"') for name in hcl2.loads(block(NAME, "terraform.tfvars"))} - {"__comments__"}
    files = configuration()
    variables = {
        name.strip('"'): body for file in files for each in file.get("variable", ()) for name, body in each.items()
    }
    assert told <= variables.keys()
    assert {name for name, body in variables.items() if "default" not in body} <= told
    rows = set(re.findall(r"`(\w+\.tf)`", PAGE.partition("| file | makes |")[2].partition("\n\n")[0]))
    assert rows == {path.name for path in TERRAFORM.glob("*.tf")} - {"versions.tf", "variables.tf", "outputs.tf"}
    outputs = {name.strip('"') for file in files for each in file.get("output", ()) for name in each}
    assert set(re.findall(r"terraform output (?:-raw )?(\w+)", PAGE)) | {"ledger_password", "cluster"} == outputs


@pytest.mark.skipif(not PROGRAM, reason="there is no terraform, and no registry of packages has it")
def test_the_variables_of_the_page_are_taken(tmp_path: Path) -> None:
    with terraform(tmp_path / "configuration") as program:
        (program.folder / "terraform.tfvars").write_text(block(NAME, "terraform.tfvars"))
        program.said("plan", "-input=false", "-lock=false", "-no-color")
