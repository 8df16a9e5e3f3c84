"""What infra/terraform makes is what the manifests stand on: Terraform plans it, by what AWS's provider takes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.infra.charts import released
from tests.infra.manifests import NODES, PLANE, overlay, workloads
from tests.infra.terraforming import PROGRAM, Terraform, terraform, values_of, written
from tests.infra.test_manifest_settings import settings_of
from tests.infra.test_manifests import VERSIONS
from tests.infra.test_network_policies import needed
from tools.aws_schema import META, TERRAFORM, configuration, declared

SCHEMA = json.loads((Path(__file__).parent / "aws_schema.json").read_text())
needs_terraform = pytest.mark.skipif(not PROGRAM, reason="there is no terraform, and no registry of packages has it")
MARKS = {"__is_block__", "__comments__", "__inline_comments__"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terraform]:
    with terraform(tmp_path_factory.mktemp("terraform") / "configuration") as program:
        yield program


@pytest.fixture(scope="module")
def made(program: Terraform) -> dict[str, Any]:
    """All that a first `terraform apply` would make."""
    return program.carried_out(region="eu-central-1")


def faults(body: Mapping[str, Any], block: Mapping[str, Any], own: set[str]) -> Iterator[str]:
    """Arguments that the provider does not know, and those that it misses; `own` are Terraform's."""
    given = body.keys() - MARKS - own
    yield from given - block["arguments"].keys()
    yield from (f"no {name}" for name in block["required"] if name not in given)
    for name in given & block["arguments"].keys():
        kind = block["arguments"][name]
        inside = body[name]
        if isinstance(kind, dict):
            for each in inside if isinstance(inside, list) else [inside]:
                yield from (f"{name}.{fault}" for fault in faults(each, kind, set()))


@pytest.mark.parametrize("kind", ["resource", "data"])
def test_the_provider_knows_each_argument(kind: str) -> None:
    """Of each type, and all that must be there is; also where there is no Terraform."""
    found = {
        f"{type_name}.{name}: {fault}"
        for type_name, name, body in declared(kind)
        for fault in faults(body, SCHEMA[kind][type_name], META)
    }
    assert found == set()
    assert {each for each, _, _ in declared(kind)} == SCHEMA[kind].keys()


def test_an_argument_that_the_provider_lacks_is_found() -> None:
    assert list(faults({"bucket": "x", "acll": "private"}, SCHEMA["resource"]["aws_s3_bucket"], META)) == ["acll"]
    assert list(faults({}, SCHEMA["resource"]["aws_db_instance"], META)) == ["no instance_class"]


def test_the_versions_are_those_that_are_tested() -> None:
    """Of the provider the major one; of Kubernetes one between the oldest and the newest of the page."""
    text = (TERRAFORM / "versions.tf").read_text()
    assert f'"~> {SCHEMA["provider"].partition(".")[0]}.0"' in text
    (version,) = [
        body["default"].strip('"')
        for file in configuration()
        for each in file.get("variable", ())
        for name, body in each.items()
        if name.strip('"') == "kubernetes_version"
    ]
    oldest, told, newest = (tuple(map(int, each.split("."))) for each in (VERSIONS[0], version, VERSIONS[1]))
    assert oldest <= told <= newest


@needs_terraform
def test_files_are_as_terraform_formats_them() -> None:
    command = [PROGRAM, "fmt", "-check", "-diff", str(TERRAFORM)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@needs_terraform
def test_terraform_finds_no_fault(program: Terraform) -> None:
    """In types, references, conditions and functions."""
    said = json.loads(program.said("validate", "-json"))
    assert (said["valid"], said["diagnostics"]) == (True, [])


@needs_terraform
@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("storage_encrypted ", "storage_encripted ", "Unsupported argument"),
        ("aws_security_group.database.id", "aws_security_group.ledger.id", "Reference to undeclared resource"),
        ("aws_db_subnet_group.ledger.name", "aws_db_subnet_group.ledger.named", "Unsupported attribute"),
        ("multi_az                      = true", 'multi_az = "often"', "Incorrect attribute value type"),
    ],
)
def test_terraform_finds_a_fault(tmp_path: Path, right: str, wrong: str, says: str) -> None:
    """So what it knows of the provider is enough for it."""
    with terraform(tmp_path / "configuration") as program:
        file = next(path for path in program.folder.glob("*.tf") if right in path.read_text())
        file.write_text(file.read_text().replace(right, wrong, 1))
        assert says in program.run("validate", "-json").stdout


@needs_terraform
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("network", "10.0.0.0/20", "Expected a /16"),
        ("plane", {"count": 2}, "three nodes or more"),
        ("pools", {"x": {"instance_types": ["g6.xlarge"], "least": 2, "most": 1}}, "at most as many"),
        ("name", "Pilotlight", "lower-case"),
    ],
)
def test_what_cannot_be_is_refused(program: Terraform, name: str, value: Any, says: str) -> None:
    given = ("-var=region=x", f"-var={name}={written(value)}")
    done = program.run("plan", "-input=false", "-no-color", "-lock=false", *given)
    assert done.returncode == 1
    assert says in " ".join(done.stderr.replace("│", " ").split())


@needs_terraform
def test_its_values_are_the_charts(made: dict[str, Any]) -> None:
    """The chart takes what Terraform says: the bucket, the key, roles, the database's addresses, the bus's volumes."""
    outputs = {name: each["value"] for name, each in made["outputs"].items()}
    values, storage = yaml.safe_load(outputs["values"]), yaml.safe_load(outputs["storage_class"])
    objects = released(**values)
    roles = values_of(made, "aws_iam_role")

    for who in ("gateway", "duties"):
        notes = objects["ServiceAccount", PLANE, f"pilotlight-{who}"]["metadata"]["annotations"]
        assert notes == {"eks.amazonaws.com/role-arn": roles[f"account[{who}]"]["arn"]}
    assert settings_of(tuple(objects.values()), "gateway").region == "eu-central-1"
    settings = objects["ConfigMap", PLANE, "pilotlight"]["data"]
    (bucket,) = values_of(made, "aws_s3_bucket").values()
    assert settings["blob-url"] == f"s3://{bucket['bucket']}?region=eu-central-1"
    assert objects["ConfigMap", NODES, "pilotlight-agent"]["data"]["blob-url"] == settings["blob-url"]
    assert settings["secrets-key"] == "aws-kms://alias/pilotlight?region=eu-central-1"
    (peer,) = objects["NetworkPolicy", PLANE, "ledger"]["spec"]["egress"][0]["to"]
    within = [each["cidr_block"] for name, each in values_of(made, "aws_subnet").items() if name.startswith("database")]
    assert all(IPv4Network(each).subnet_of(IPv4Network(peer["ipBlock"]["cidr"])) for each in within)
    kubernetes_validate.validate(storage, VERSIONS[1], strict=True)
    (claim,) = objects["StatefulSet", PLANE, "pilotlight-bus"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == storage["metadata"]["name"]


@needs_terraform
def test_networks_do_not_overlap(made: dict[str, Any]) -> None:
    subnets = values_of(made, "aws_subnet")
    networks = {name: IPv4Network(each["cidr_block"]) for name, each in subnets.items()}
    assert len(networks) == 9
    assert not any(one.overlaps(other) for one, other in combinations(networks.values(), 2))
    assert all(each.subnet_of(IPv4Network("10.42.0.0/16")) for each in networks.values())
    assert len({each["availability_zone"] for each in subnets.values()}) == 3


def ports_of(rule: Mapping[str, Any]) -> tuple[str, int]:
    return rule["ip_protocol"], rule["to_port"]


@needs_terraform
def test_roles_hear_each_other_as_policies_say(made: dict[str, Any]) -> None:
    """Between nodes with agents and the rest, port by port; within the control plane, policies alone decide."""
    groups = {each["id"]: name for name, each in values_of(made, "aws_security_group").items()}
    heard = {
        (groups.get(each["referenced_security_group_id"]), groups.get(each["security_group_id"]), *ports_of(each))
        for name, each in values_of(made, "aws_vpc_security_group_ingress_rule").items()
        if name.startswith("heard") and each["from_port"] == each["to_port"]
    }
    objects = overlay("gpu")
    metrics = workloads(objects)["agent"].ports["metrics"]
    agents = {("agents", "plane", "tcp", flow.port) for flow in needed(objects) if flow.speaker == "agent"}
    names = {("agents", "plane", protocol, 53) for protocol in ("tcp", "udp")}
    between = {each for each in heard if {*each[:2]} == {"agents", "plane"}}

    assert between == agents | names | {("plane", "agents", "tcp", metrics)}
    assert {each for each in heard if each[1] == "database"} == {("plane", "database", "tcp", 5432)}
    assert not any(each[:2] == ("agents", "agents") for each in heard)


@needs_terraform
def test_nodes_are_those_that_agents_want(made: dict[str, Any]) -> None:
    """By labels and taints; a pool is spot or not, as it is said."""
    groups, pod = values_of(made, "aws_eks_node_group"), workloads(overlay("gpu"))["agent"].pod
    tolerated = {each["key"] for each in pod["tolerations"]}
    pools = {name: each for name, each in groups.items() if name.startswith("agents")}

    assert pools.keys() == {"agents[l4]", "agents[l4-spot]"}
    for name, each in pools.items():
        assert pod["nodeSelector"].items() <= each["labels"].items()
        assert {taint["key"] for taint in each["taint"]} <= tolerated
        assert each["capacity_type"] == ("SPOT" if "spot" in name else "ON_DEMAND")
        assert each["ami_type"] == "AL2023_x86_64_NVIDIA"
    assert groups["plane"]["taint"] == []
    servers = workloads(overlay("gpu"))["bus"].manifest["spec"]["replicas"]
    assert groups["plane"]["scaling_config"][0]["min_size"] == servers


@needs_terraform
def test_a_pool_without_gpus_is_one(tmp_path: Path) -> None:
    pools = {"cpu": {"instance_types": ["m7i.4xlarge"], "gpu": False, "most": 2}}
    with terraform(tmp_path / "configuration") as program:
        group = values_of(program.carried_out(region="x", pools=pools), "aws_eks_node_group")["agents[cpu]"]
    selector = workloads(overlay("cpu"))["agent"].pod["nodeSelector"]
    assert selector.items() <= group["labels"].items()
    assert "nvidia.com/gpu.present" not in group["labels"]
    assert group["ami_type"] == "AL2023_x86_64_STANDARD"


@needs_terraform
def test_nothing_is_public_or_in_clear(made: dict[str, Any]) -> None:
    """The bucket, the database, disks, Kubernetes' secrets; and a pod gets no role of its node."""
    (shut,) = values_of(made, "aws_s3_bucket_public_access_block").values()
    (database,) = values_of(made, "aws_db_instance").values()
    (cluster,) = values_of(made, "aws_eks_cluster").values()
    (sealed,) = values_of(made, "aws_s3_bucket_server_side_encryption_configuration").values()
    flags = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
    assert all(shut[flag] for flag in flags)
    assert sealed["rule"][0]["apply_server_side_encryption_by_default"][0]["sse_algorithm"] == "aws:kms"
    assert (database["publicly_accessible"], database["storage_encrypted"], database["deletion_protection"]) == (
        False,
        True,
        True,
    )
    assert not cluster["vpc_config"][0]["endpoint_public_access"]
    assert cluster["encryption_config"][0]["resources"] == ["secrets"]
    for template in values_of(made, "aws_launch_template").values():
        (options,) = template["metadata_options"]
        assert (options["http_tokens"], options["http_put_response_hop_limit"]) == ("required", 1)
        assert all(disk["ebs"][0]["encrypted"] == "true" for disk in template["block_device_mappings"])


@needs_terraform
def test_roles_may_do_what_their_processes_do(made: dict[str, Any]) -> None:
    """No more: each has actions by name, upon what is the platform's; agents have none."""
    policies = values_of(made, "aws_iam_role_policy")
    granted = {name: json.loads(each["policy"])["statement"] for name, each in policies.items()}
    actions = {name: {action for each in said for action in each["actions"]} for name, said in granted.items()}

    assert granted.keys() == {"blobs[gateway]", "blobs[duties]", "secrets", "volumes"}
    assert actions["secrets"] == {"kms:Encrypt", "kms:Decrypt", "kms:DescribeKey"}
    assert not any("*" in action for each in actions.values() for action in each)
    assert not any(resource == "*" for said in granted.values() for each in said for resource in each["resources"])
