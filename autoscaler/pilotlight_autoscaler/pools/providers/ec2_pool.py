"""Machines of EC2: one fleet of type "instant" for each launch, found again by tags, heard of by a queue.

A launch is idempotent in three ways, whichever step a controller died at: a machine that has its id as a tag is the
one; the launch template of its name is used as it is; and the fleet has the id as its client token.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

import structlog

from pilotlight_autoscaler.pools.node_pool import (
    MOST_LISTED,
    MOST_NOTICES,
    LaunchOrder,
    LaunchRefused,
    NoCapacity,
    PoolError,
    PoolMachine,
    PoolNotice,
)
from pilotlight_autoscaler.pools.providers.ec2_events import notice_in
from pilotlight_autoscaler.pools.providers.user_data import user_data
from pilotlight_core.host.outbound.aws_clients import AwsClient, open_aws
from pilotlight_core.model.api.pools.pool_terms import Ec2Terms
from pilotlight_core.model.records.pools import PoolRecord

OWNER_TAG, POOL_TAG, LAUNCH_TAG, NODE_TAG = (
    "pilotlight:owner", "pilotlight:pool", "pilotlight:launch", "pilotlight:node"
)  # fmt: skip
PRESENT = ("pending", "running", "shutting-down", "stopping", "stopped")
NO_CAPACITY = frozenset({
    "InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacity", "UnfulfillableCapacity",
    "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "InstanceLimitExceeded", "SpotMaxPriceTooLow",
    "InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "Unsupported",
})  # fmt: skip
PASSING = frozenset({
    "RequestLimitExceeded", "Throttling", "ThrottlingException", "InternalError", "Unavailable", "ServiceUnavailable",
    "InternalFailure", "IdempotentParameterMismatch", "InvalidLaunchTemplateName.NotFoundException",
})  # fmt: skip
TEMPLATE_THERE = "InvalidLaunchTemplateName.AlreadyExistsException"
CONNECT_S, READ_S, ATTEMPTS, CONNECTIONS = 5.0, 30.0, 3, 8
MESSAGES = 10
"""Of a queue, in one answer."""

log = structlog.get_logger(__name__)
T = TypeVar("T")
OpenService = Callable[[str], AwsClient]
"""A client of "ec2", "sqs" or "autoscaling"."""


def service_opener(terms: Ec2Terms) -> OpenService:
    """Opens clients by the credentials that boto3 finds; `AWS_ENDPOINT_URL` names another address."""

    def opened(service: str) -> AwsClient:
        return open_aws(
            service, "ec2", endpoint=None, region=terms.region or None, connect_s=CONNECT_S, read_s=READ_S,
            attempts=ATTEMPTS, connections=CONNECTIONS,
        )  # fmt: skip

    return opened


class Ec2Pool:
    """The machines of one pool: those with its id as a tag, which no pool of another platform has."""

    def __init__(self, record: PoolRecord, open_service: OpenService | None = None) -> None:
        terms = record.terms.ec2
        if terms is None or not record.id:
            raise ValueError(f"the pool {record.name} does not say how its machines are made at EC2")
        self._terms = terms
        self._pool = record.name
        self._is_spot = record.terms.is_spot
        self._owner = record.id
        self._open_service = open_service or service_opener(terms)
        self._clients: dict[str, AwsClient] = {}
        # Of its own: a provider that answers late must not hold up what the rest of the process does in threads.
        self._threads = ThreadPoolExecutor(max_workers=CONNECTIONS, thread_name_prefix="ec2")
        self._zones = {subnet: zone for zone, subnet in terms.subnets.items()}
        self._told: list[str] = []
        """Receipts of messages whose notices were given away: they go with the next question."""

    async def list_machines(self) -> Sequence[PoolMachine]:
        return await self._call("ec2", self._list)

    async def launch(self, order: LaunchOrder) -> PoolMachine:
        return await self._call("ec2", lambda ec2: self._launch(ec2, order))

    async def terminate(self, machine: PoolMachine) -> None:
        if self._terms.lifecycle_group:
            try:
                await self._call("autoscaling", lambda groups: self._let_go(groups, machine.provider_id))
            except PoolError as error:  # whatever is wrong with a group, the machine is paid for
                log.warning("a group's hooks are not answered", group=self._terms.lifecycle_group, error=str(error))
        await self._call("ec2", lambda ec2: ec2.client.terminate_instances(InstanceIds=[machine.provider_id]))

    async def notices(self) -> Sequence[PoolNotice]:
        if not self._terms.queue_url:
            return ()
        return await self._call("sqs", self._receive)

    async def aclose(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for client in self._clients.values():
            client.client.close()
        self._clients.clear()

    async def _call(self, service: str, work: Callable[[AwsClient], T]) -> T:
        """Do it in a thread, with boto3's errors as the port's."""

        def done() -> T:
            if service not in self._clients:
                self._clients[service] = self._open_service(service)
            client = self._clients[service]
            try:
                return work(client)
            except client.client_errors as error:
                raise _meant(error) from None
            except client.transport_errors as error:
                raise PoolError(f"{service} cannot be reached: {error}") from None

        return await asyncio.get_running_loop().run_in_executor(self._threads, done)

    # --- list ---

    def _list(self, ec2: AwsClient, launch: str = "") -> list[PoolMachine]:
        wanted = {OWNER_TAG: self._owner, **({LAUNCH_TAG: launch} if launch else {})}
        filters = [{"Name": f"tag:{name}", "Values": [value]} for name, value in wanted.items()]
        filters.append({"Name": "instance-state-name", "Values": list(PRESENT)})
        pages = ec2.client.get_paginator("describe_instances").paginate(
            Filters=filters, PaginationConfig={"MaxItems": MOST_LISTED, "PageSize": 500}
        )
        return [
            self._machine(instance)
            for page in pages
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        ]

    def _machine(self, instance: dict[str, Any]) -> PoolMachine:
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
        where = instance.get("Placement", {}).get("AvailabilityZone", "")
        return PoolMachine(
            launch=tags.get(LAUNCH_TAG, ""),
            provider_id=instance["InstanceId"],
            node=tags.get(NODE_TAG, ""),
            type=instance.get("InstanceType", ""),
            zone=self._zones.get(instance.get("SubnetId", ""), where),
            is_ending=instance["State"]["Name"] not in ("pending", "running"),
        )

    # --- launch ---

    def _launch(self, ec2: AwsClient, order: LaunchOrder) -> PoolMachine:
        name = f"pilotlight-{order.launch.id}"
        if found := self._list(ec2, order.launch.id):
            self._drop_template(ec2, name)
            return found[0]
        subnet = self._terms.subnets.get(order.launch.zone)
        if subnet is None:
            raise LaunchRefused(f"ec2.subnets has none for the zone {order.launch.zone}")
        try:
            tags = [{"Key": OWNER_TAG, "Value": self._owner}]
            ec2.client.create_launch_template(
                LaunchTemplateName=name, LaunchTemplateData=self._template(order),
                TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
            )  # fmt: skip
        except ec2.client_errors as error:
            if _code(error) != TEMPLATE_THERE:  # of an earlier try: the fleet must be asked for with the same
                raise
        try:
            answer = ec2.client.create_fleet(**self._fleet(order, name, subnet))
        finally:
            self._drop_template(ec2, name)
        made = [machine for part in answer.get("Instances", ()) for machine in part["InstanceIds"]]
        if not made:
            raise _unfulfilled(answer.get("Errors", ()))
        described: list[PoolMachine] = []
        with suppress(ec2.client_errors, ec2.transport_errors):  # the machine is there, and paid for, all the same
            described = self._list(ec2, order.launch.id)
        return described[0] if described else PoolMachine(launch=order.launch.id, provider_id=made[0])

    def _template(self, order: LaunchOrder) -> dict[str, Any]:
        terms, script = self._terms, user_data(self._terms, order.launch, order.join_text)
        return {
            "ImageId": terms.image,
            "UserData": base64.b64encode(script.encode()).decode(),
            "SecurityGroupIds": list(terms.security_groups),
            "InstanceInitiatedShutdownBehavior": "terminate",
            # With a session only, and for the machine itself alone: not for what runs in containers on it.
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"},
            "BlockDeviceMappings": [
                {
                    "DeviceName": "/dev/xvda",
                    "Ebs": {
                        "VolumeSize": terms.disk_gib, "VolumeType": "gp3", "Encrypted": True,
                        "DeleteOnTermination": True,
                    },
                }
            ],
            **({"IamInstanceProfile": {"Name": terms.instance_profile}} if terms.instance_profile else {}),
        }  # fmt: skip

    def _fleet(self, order: LaunchOrder, template: str, subnet: str) -> dict[str, Any]:
        tags = [{"Key": name, "Value": value} for name, value in self._tags(order).items()]
        overrides = [{"InstanceType": type_, "SubnetId": subnet} for type_ in order.types]
        return {
            "Type": "instant",
            "ClientToken": order.launch.id,
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": 1,
                "DefaultTargetCapacityType": "spot" if self._is_spot else "on-demand",
            },
            "SpotOptions": {
                "AllocationStrategy": "price-capacity-optimized", "InstanceInterruptionBehavior": "terminate",
            },
            "OnDemandOptions": {"AllocationStrategy": "lowest-price"},
            "LaunchTemplateConfigs": [
                {
                    "LaunchTemplateSpecification": {"LaunchTemplateName": template, "Version": "1"},
                    "Overrides": overrides,
                }
            ],
            "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "fleet")],
        }  # fmt: skip

    def _tags(self, order: LaunchOrder) -> dict[str, str]:
        return {
            OWNER_TAG: self._owner, POOL_TAG: self._pool, LAUNCH_TAG: order.launch.id,
            NODE_TAG: order.launch.node, "Name": order.launch.node,
        }  # fmt: skip

    def _drop_template(self, ec2: AwsClient, name: str) -> None:
        """A token stands in it, which its machine has by now."""
        with suppress(ec2.client_errors):
            ec2.client.delete_launch_template(LaunchTemplateName=name)

    # --- end ---

    def _let_go(self, groups: AwsClient, machine: str) -> None:
        """Answer the hooks of its Auto Scaling group that wait for it."""
        group = self._terms.lifecycle_group
        hooks = groups.client.describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]
        for hook in islice(hooks, 20):
            if hook["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING":
                with suppress(groups.client_errors):  # it waits for nothing, or not any more
                    groups.client.complete_lifecycle_action(
                        LifecycleHookName=hook["LifecycleHookName"], AutoScalingGroupName=group,
                        LifecycleActionResult="CONTINUE", InstanceId=machine,
                    )  # fmt: skip

    # --- notices ---

    def _receive(self, sqs: AwsClient) -> list[PoolNotice]:
        url, told = self._terms.queue_url, self._told
        for first in range(0, len(told), MESSAGES):
            entries = [
                {"Id": str(number), "ReceiptHandle": receipt}
                for number, receipt in enumerate(told[first : first + MESSAGES])
            ]
            sqs.client.delete_message_batch(QueueUrl=url, Entries=entries)
        self._told = []
        found: list[PoolNotice] = []
        while len(self._told) < MOST_NOTICES:
            answer = sqs.client.receive_message(QueueUrl=url, MaxNumberOfMessages=MESSAGES, WaitTimeSeconds=0)
            messages = answer.get("Messages", ())
            self._told += [message["ReceiptHandle"] for message in messages]
            found += [notice for message in messages if (notice := notice_in(message["Body"])) is not None]
            if not messages:
                break
        return found


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _meant(error: Any) -> PoolError:
    code, text = _code(error), f"{_code(error)}: {error.response.get('Error', {}).get('Message', '')}"[:500]
    if code in NO_CAPACITY:
        return NoCapacity(text)
    return PoolError(text) if code in PASSING else LaunchRefused(text)


def _unfulfilled(errors: Sequence[dict[str, Any]]) -> PoolError:
    """What an answer without machines says: of several reasons a lack of capacity counts, which passes."""
    codes = {str(error.get("ErrorCode", "")) for error in errors}
    text = "; ".join(dict.fromkeys(f"{e.get('ErrorCode')}: {e.get('ErrorMessage')}" for e in errors))[:500]
    if not codes or codes & NO_CAPACITY:
        return NoCapacity(text or "EC2 made no machine, and does not say why")
    return PoolError(text) if codes & PASSING else LaunchRefused(text)
