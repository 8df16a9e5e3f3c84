"""Machines of EC2, at moto's server: launches that may be repeated, lists by tags, notices by a queue."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from msgspec.structs import replace

from pilotlight_autoscaler.pools.node_pool import LaunchOrder, LaunchRefused, NoCapacity, NoticeAbout, PoolMachine
from pilotlight_autoscaler.pools.providers.ec2_pool import Ec2Pool, OpenService
from pilotlight_core.host.outbound.aws_clients import AwsClient, open_aws
from pilotlight_core.model.api.pools.pool_terms import Ec2Terms, MachineType, PoolProvider, PoolTerms
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.pools import LaunchRecord, PoolRecord

REGION = "eu-central-1"
IMAGE = "ami-12c6146b"
"""One of those that moto has; to list them takes it a second."""
JOIN = f"pl_join_{8 * 'a'}_{40 * 'b'}"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The address of a server that speaks AWS's protocols."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@dataclass
class Account:
    """An account with a network, an image and a queue; `spied` are the requests of `create_fleet`."""

    url: str
    pools: str
    spied: list[dict[str, Any]] = field(default_factory=list)
    templates: list[dict[str, Any]] = field(default_factory=list)
    completed: list[tuple[str, ...]] = field(default_factory=list)
    crash_after_fleet: bool = False
    answer: dict[str, Any] | None = None
    """What `create_fleet` answers instead."""

    def __post_init__(self) -> None:
        ec2 = self.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZone=f"{REGION}b")["Subnet"][
            "SubnetId"
        ]
        self.image = IMAGE
        self.queue = self.client("sqs").create_queue(QueueName=f"notices-{self.pools}")["QueueUrl"]

    def client(self, service: str) -> Any:
        return boto3.client(
            service, endpoint_url=self.url, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test"
        )  # type: ignore[call-overload]

    def record(self, **more: Any) -> PoolRecord:
        terms = Ec2Terms(
            image=self.image, subnets={"eu-1": self.subnet}, join_url="https://gw.example.com:8470",
            queue_url=self.queue, region=REGION, trusted_pem="", ca_pem="-----BEGIN CERTIFICATE-----\nx\n",
        )  # fmt: skip
        types = (MachineType(name="g6.xlarge", gpus="1xL4"), MachineType(name="g5.xlarge", gpus="1xA10"))
        fields: dict[str, Any] = {"purchase": Purchase.SPOT, "zones": ("eu-1",), **more}
        return PoolRecord(
            name=self.pools, id=self.pools, terms=PoolTerms(provider=PoolProvider.EC2, types=types, ec2=terms, **fields)
        )

    def opener(self, monkeypatch: pytest.MonkeyPatch) -> OpenService:
        for name, value in (("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")):
            monkeypatch.setenv(name, value)

        def opened(service: str) -> AwsClient:
            made = open_aws(
                service, "ec2", endpoint=self.url, region=REGION, connect_s=5.0, read_s=10.0, attempts=1, connections=4
            )
            if service == "ec2":
                self._spy(made.client)
            if service == "autoscaling":  # moto has no such operation
                made.client.complete_lifecycle_action = lambda **asked: self.completed.append(tuple(asked.values()))
            return made

        return opened

    def _spy(self, client: Any) -> None:
        create_fleet, create_template = client.create_fleet, client.create_launch_template

        def fleet(**asked: Any) -> Any:
            self.spied.append(asked)
            if self.answer is not None:
                return self.answer
            made = create_fleet(**asked)
            if self.crash_after_fleet:
                raise KeyboardInterrupt
            return made

        def template(**asked: Any) -> Any:
            self.templates.append(asked)
            return create_template(**asked)

        client.create_fleet, client.create_launch_template = fleet, template


@pytest.fixture
def account(moto: str, request: pytest.FixtureRequest) -> Account:
    """One with a pool of the test's own name."""
    return Account(url=moto, pools=re.sub("[^a-z]+", "-", request.node.name.lower())[-40:].strip("-"))


def order(record: PoolRecord, launch: str = "launch1", zone: str = "eu-1") -> LaunchOrder:
    made = LaunchRecord(
        id=launch, pool=record.name, slot=1, node=f"l4-{launch}", type="g6.xlarge", zone=zone, spot=True
    )
    return LaunchOrder(pool=record, launch=made, types=("g6.xlarge", "g5.xlarge"), join_text=JOIN)


async def test_a_machine_is_launched_listed_and_ended(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an instant fleet that takes the spot pools with room, with sessions required for its metadata; found by tags;
    its template, in which a token stood, is gone."""
    record = account.record()
    pool = Ec2Pool(record, account.opener(monkeypatch))

    machine = await pool.launch(order(record))

    assert [machine] == list(await pool.list_machines())
    assert (machine.launch, machine.node, machine.zone, machine.type) == ("launch1", "l4-launch1", "eu-1", "g6.xlarge")
    asked = account.spied[0]
    assert (asked["Type"], asked["ClientToken"]) == ("instant", "launch1")
    assert asked["SpotOptions"]["AllocationStrategy"] == "price-capacity-optimized"
    assert asked["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "spot"
    data = account.templates[0]["LaunchTemplateData"]
    assert data["MetadataOptions"] == {
        "HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled",
    }  # fmt: skip
    script = base64.b64decode(data["UserData"]).decode()
    assert JOIN in script
    assert "--node=l4-launch1" in script
    assert "--token=-" in script  # and not where a list of processes shows it
    assert account.client("ec2").describe_launch_templates()["LaunchTemplates"] == []

    await pool.terminate(machine)
    assert all(each.is_ending for each in await pool.list_machines())
    await pool.terminate(machine)  # again
    await pool.aclose()


async def test_a_launch_that_was_cut_off_is_found_again(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next controller asks for the same, and gets the machine that there is: never a second one."""
    record = account.record()
    account.crash_after_fleet = True
    with pytest.raises(KeyboardInterrupt):
        await Ec2Pool(record, account.opener(monkeypatch)).launch(order(record))
    account.crash_after_fleet = False

    pool = Ec2Pool(record, account.opener(monkeypatch))
    found = await pool.launch(order(record))

    assert [found] == list(await pool.list_machines())
    assert len(account.spied) == 1
    assert account.client("ec2").describe_launch_templates()["LaunchTemplates"] == []


async def test_a_machine_that_is_there_is_no_launch_that_was_refused(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EC2 has made it, and then refuses to describe it: its record must not be forgotten."""
    pool = Ec2Pool(account.record(), account.opener(monkeypatch))
    list_all = pool._list
    asked: list[str] = []

    def refused(ec2: AwsClient, launch: str = "") -> list[PoolMachine]:
        asked.append(launch)
        if len(asked) == 2:
            raise ec2.client_errors({"Error": {"Code": "ExpiredToken", "Message": "no"}}, "DescribeInstances")
        return list_all(ec2, launch)

    monkeypatch.setattr(pool, "_list", refused)
    made = await pool.launch(order(account.record()))
    assert [each.provider_id for each in await pool.list_machines()] == [made.provider_id]
    await pool.terminate(made)
    await pool.aclose()


async def test_others_machines_are_not_listed(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another platform in the account, or another pool."""
    record = account.record()
    opener = account.opener(monkeypatch)
    await Ec2Pool(replace(record, id="of-another-platform"), opener).launch(order(record, "theirs"))

    assert list(await Ec2Pool(record, opener).list_machines()) == []


@pytest.mark.parametrize(
    ("code", "raised"), [("InsufficientInstanceCapacity", NoCapacity), ("InvalidAMIID.NotFound", LaunchRefused)]
)
async def test_no_capacity_is_another_matter_than_a_wrong_pool(
    account: Account, monkeypatch: pytest.MonkeyPatch, code: str, raised: type[Exception]
) -> None:
    """The first passes; for the second someone has to change the pool."""
    record = account.record()
    account.answer = {"Instances": [], "Errors": [{"ErrorCode": code, "ErrorMessage": "so it is"}]}

    with pytest.raises(raised, match=code):
        await Ec2Pool(record, account.opener(monkeypatch)).launch(order(record))
    assert account.client("ec2").describe_launch_templates()["LaunchTemplates"] == []


async def test_a_zone_without_a_subnet_is_refused(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a fault of the pool."""
    record = account.record()
    with pytest.raises(LaunchRefused, match="subnets"):
        await Ec2Pool(record, account.opener(monkeypatch)).launch(order(record, zone="eu-9"))


async def test_messages_of_the_queue_become_notices(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was given away once is deleted with the next question; what says nothing of a machine goes with it."""
    sqs = account.client("sqs")
    for kind, detail in (
        ("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1", "instance-action": "terminate"}),
        ("EC2 Instance Rebalance Recommendation", {"instance-id": "i-2"}),
        ("EC2 Instance State-change Notification", {"instance-id": "i-3", "state": "terminated"}),
        ("EC2 Instance State-change Notification", {"instance-id": "i-4", "state": "running"}),
    ):
        event = {"source": "aws.ec2", "detail-type": kind, "detail": detail, "time": "2026-11-20T10:00:00Z"}
        sqs.send_message(QueueUrl=account.queue, MessageBody=json.dumps(event))
    sqs.send_message(QueueUrl=account.queue, MessageBody="no JSON")
    pool = Ec2Pool(account.record(), account.opener(monkeypatch))

    found = {notice.provider_id: notice for notice in await pool.notices()}

    assert {name: notice.about for name, notice in found.items()} == {
        "i-1": NoticeAbout.INTERRUPTION, "i-2": NoticeAbout.REBALANCE, "i-3": NoticeAbout.STATE,
    }  # fmt: skip
    assert found["i-1"].deadline_at == datetime(2026, 11, 20, 10, 2, tzinfo=UTC).timestamp()
    assert list(await pool.notices()) == []
    kept = sqs.get_queue_attributes(QueueUrl=account.queue, AttributeNames=["All"])["Attributes"]
    assert kept["ApproximateNumberOfMessagesNotVisible"] == kept["ApproximateNumberOfMessages"] == "0"


async def test_the_hooks_of_a_group_are_answered(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Auto Scaling group waits for no machine that has ended."""
    groups = account.client("autoscaling")
    groups.create_launch_configuration(
        LaunchConfigurationName="c", ImageId=account.image, InstanceType="g6.xlarge", SecurityGroups=[]
    )
    groups.create_auto_scaling_group(
        AutoScalingGroupName="agents",
        LaunchConfigurationName="c",
        MinSize=0,
        MaxSize=1,
        VPCZoneIdentifier=account.subnet,
    )
    groups.put_lifecycle_hook(
        LifecycleHookName="drain", AutoScalingGroupName="agents",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
    )  # fmt: skip
    record = account.record()
    assert record.terms.ec2 is not None
    terms = replace(record.terms, ec2=replace(record.terms.ec2, lifecycle_group="agents"))
    record = replace(record, terms=terms)
    pool = Ec2Pool(record, account.opener(monkeypatch))
    machine = await pool.launch(order(record))

    await pool.terminate(machine)

    assert all(each.is_ending for each in await pool.list_machines())
    assert account.completed == [("drain", "agents", "CONTINUE", machine.provider_id)]


async def test_requests_have_threads_of_their_own_which_end_with_the_pool(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where EC2 answers late, whatever else the controller does in threads goes on."""
    threads: list[str] = []
    opener = account.opener(monkeypatch)

    def opened(service: str) -> AwsClient:
        threads.append(threading.current_thread().name)
        return opener(service)

    made = Ec2Pool(account.record(), opened)
    await made.list_machines()
    await made.aclose()
    assert [name.partition("_")[0] for name in threads] == ["ec2"]
    with pytest.raises(RuntimeError, match="shutdown"):
        await made.list_machines()
