"""The users of the bus and their permissions: one user per role, and one per node.

    operator     everything: people and tests; no process of the platform
    gateway      calls, the registry, shards and keys; creates the streams
    controller   commands to agents, under its own lease
    duties       reads and trims usage and logs, sends webhooks, drives batches, deletes versions, stores the jobs
                 of schedules; under leases
    agent-NODE   subjects that name its node, and no others: reports, credits, frames, questions for
                 storage, blobs and secrets, calls that its functions make; the layouts of its GPUs

Permissions are lists of allowed subjects. A new subject, stream or bucket has to be added here, which a test checks.
`python -m pilotlight_core.bus.bus_users NODE...` prints the block of a server's configuration.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable

import msgspec

from pilotlight_core.bus.streams import DEFAULT_LIMITS, KEPT_STREAMS, bucket_stream, key_subject, stream_configs
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import check_name

ANY = "*"
OPERATOR, GATEWAY, CONTROLLER, DUTIES = "operator", "gateway", "controller", "duties"
AGENT = "agent-"
API = "$JS.API"
ADMISSIONS = "$SYS.REQ.USER.AUTH"
"""Where servers ask whether to let in a connection that their configuration does not name."""
VARIABLE = "PILOTLIGHT_BUS_"
SERVER = "$SYS.REQ.SERVER"
"""Below it servers answer about themselves, to users of their own account."""


class AdmissionKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The public keys that a server's configuration names, so that nodes can join."""

    issuer: str
    """Of the account whose signature lets a connection in."""
    keeper: str
    """Of the user that closes connections."""


class BusUser(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    inbox: str
    """The prefix of its reply subjects, to which no other user may subscribe."""
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]

    @property
    def variable(self) -> str:
        return VARIABLE + self.name.upper().replace("-", "_")


def operator() -> BusUser:
    return BusUser(name=OPERATOR, inbox="_INBOX", publish=(">",), subscribe=(">",))


def gateway() -> BusUser:
    buckets = (
        subjects.TENANCY_BUCKET, subjects.REGISTRY_BUCKET, subjects.LEASE_BUCKET, subjects.SHARD_BUCKET,
        subjects.IDEMPOTENCY_BUCKET, subjects.JOB_BUCKET, subjects.BATCH_BUCKET, subjects.WEBHOOK_BUCKET,
        subjects.DELIVERY_BUCKET, subjects.BINDING_BUCKET, subjects.PLATFORM_BUCKET, subjects.BUDGET_BUCKET,
        subjects.SECRET_BUCKET, subjects.BLOB_KEY_BUCKET, subjects.EVIDENCE_BUCKET,
    )  # fmt: skip
    return _user(
        GATEWAY,
        "_GW",
        publish=(
            *_makes_streams(),
            *(subject for bucket in buckets for subject in _gets(bucket)),
            f"{API}.DIRECT.GET.{subjects.LOGS_STREAM}",
            *_reads(subjects.AUDIT_STREAM),
            subjects.audit(ANY, ANY),
            *_reads(subjects.EVENTS_STREAM),
            subjects.platform_events_of(ANY, ANY),
            *_reads(subjects.COMPARED_STREAM),
            subjects.compared(ANY, ANY, ANY),
            _keys(subjects.EVIDENCE_BUCKET),
            _keys(subjects.TENANCY_BUCKET),
            _keys(subjects.REGISTRY_BUCKET),
            key_subject(subjects.LEASE_BUCKET, "gateway.*"),
            key_subject(subjects.LEASE_BUCKET, "duty.rollouts"),
            _keys(subjects.SHARD_BUCKET),
            _keys(subjects.IDEMPOTENCY_BUCKET),
            _keys(subjects.JOB_BUCKET),
            _keys(subjects.BATCH_BUCKET),
            _keys(subjects.WEBHOOK_BUCKET),
            _keys(subjects.DELIVERY_BUCKET),
            _keys(subjects.PLATFORM_BUCKET),
            _keys(subjects.SECRET_BUCKET),
            _keys(subjects.BLOB_KEY_BUCKET),
            _erases(subjects.SECRET_BUCKET),
            _erases(subjects.BLOB_KEY_BUCKET),
            # To erase a tenant, whose records nobody follows in memory.
            *(subject for stream in _purged() for subject in _purges(stream)),
            key_subject(subjects.BUDGET_BUCKET, "home.*"),
            *_works_off(subjects.JOB_STREAM),
            "jobs.>",
            subjects.run(ANY, ANY, ANY),
            subjects.control(ANY, ANY),
            subjects.link_offers(ANY, ANY, ANY),
            subjects.credits_wanted(ANY),
            subjects.demand(ANY),  # of gateways of 0.1, during an upgrade
            subjects.demands(ANY),
            subjects.planned(ANY),
            subjects.traces(ANY),
            subjects.explain(ANY),
            subjects.advice(ANY),
            subjects.stop_container(ANY),
            subjects.lock_packages(ANY, ANY),
            # What it stores for agents.
            subjects.usage(ANY, ANY, ANY),
            subjects.logs(ANY, ANY, ANY, ANY, ANY),
            _keys(subjects.LAYOUT_BUCKET),
            *_gets(subjects.LAYOUT_BUCKET),
            f"{agent_inbox(ANY)}.*.*",  # its replies; each request names its own random subject
            "$SYS._INBOX.*.*",  # to servers that ask whom to let in
            *_among_gateways(),
        ),
        subscribe=(
            *(_keys(bucket) for bucket in buckets),
            "jobs.>",
            "logs.>",
            "events.>",
            subjects.credit(ANY),
            subjects.beat(ANY),
            subjects.shortage(ANY),  # of controllers that hear a gateway of 0.1
            subjects.shortages(ANY),
            subjects.blobs(ANY),
            subjects.renew(ANY),
            subjects.secrets(ANY),
            subjects.erased(ANY),
            subjects.storage(ANY),
            ADMISSIONS,
            *_among_gateways(),
        ),
    )


def controller() -> BusUser:
    lease = key_subject(subjects.LEASE_BUCKET, "controller")
    return _user(
        CONTROLLER,
        "_CTL",
        publish=(
            *_gets(subjects.TENANCY_BUCKET),
            *_gets(subjects.REGISTRY_BUCKET),
            *_gets(subjects.LEASE_BUCKET),
            *_gets(subjects.BINDING_BUCKET),
            *_gets(subjects.SCALING_BUCKET),
            *_gets(subjects.BUDGET_BUCKET),
            lease,
            key_subject(subjects.REGISTRY_BUCKET, "curves.*"),
            # Machines that it launches: what it asked for, by what they join, and that they drain.
            *(key_subject(subjects.TENANCY_BUCKET, key) for key in ("launch.*.*", "join.*", "node.*")),
            _keys(subjects.BINDING_BUCKET),
            _keys(subjects.SCALING_BUCKET),
            subjects.bindings(ANY, ANY),
            subjects.platform_events_of(ANY, ANY),
            subjects.command(ANY, ANY),
            subjects.shortage(ANY),  # for gateways of 0.1, during an upgrade
            subjects.shortages(ANY),
            "_GW.*.*",  # its replies; each request names its own random subject
        ),
        subscribe=(
            _keys(subjects.TENANCY_BUCKET),
            _keys(subjects.REGISTRY_BUCKET),
            _keys(subjects.BINDING_BUCKET),
            _keys(subjects.BUDGET_BUCKET),
            lease,
            subjects.explain(ANY),
            subjects.advice(ANY),
            subjects.stop_container(ANY),
            subjects.beat(ANY),
            subjects.ran(ANY),
            subjects.demand(ANY),
            subjects.demands(ANY),
            subjects.planned(ANY),
            subjects.credit(ANY),
        ),
    )


def duties() -> BusUser:
    lease = key_subject(subjects.LEASE_BUCKET, "duty.*")
    buckets = (subjects.JOB_BUCKET, subjects.BATCH_BUCKET, subjects.WEBHOOK_BUCKET, subjects.DELIVERY_BUCKET)
    return _user(
        DUTIES,
        "_DUTY",
        publish=(
            *_gets(subjects.LEASE_BUCKET),
            *_reads(subjects.USAGE_STREAM),
            *_reads(subjects.LOGS_STREAM),
            f"{API}.STREAM.PURGE.{subjects.USAGE_STREAM}",
            f"{API}.STREAM.PURGE.{subjects.LOGS_STREAM}",
            *(subject for bucket in buckets for subject in _gets(bucket)),
            f"{API}.STREAM.INFO.{bucket_stream(subjects.JOB_BUCKET)}",
            f"{API}.STREAM.PURGE.{bucket_stream(subjects.DELIVERY_BUCKET)}",
            *_reads(subjects.JOB_STREAM),
            *(_keys(bucket) for bucket in buckets),
            *_gets(subjects.REGISTRY_BUCKET),
            *_gets(subjects.PLATFORM_BUCKET),
            *_gets(subjects.BUDGET_BUCKET),
            *_gets(subjects.BLOB_KEY_BUCKET),
            _keys(subjects.BLOB_KEY_BUCKET),
            key_subject(subjects.BUDGET_BUCKET, "ledger.*"),
            key_subject(subjects.REGISTRY_BUCKET, "version.*"),
            key_subject(subjects.REGISTRY_BUCKET, "curves.*"),
            key_subject(subjects.REGISTRY_BUCKET, "weights.*.*"),
            key_subject(subjects.REGISTRY_BUCKET, "file.*.*"),
            key_subject(subjects.REGISTRY_BUCKET, "verdict.*"),
            subjects.platform_events_of(ANY, ANY),
            "jobs.>",
            lease,
        ),
        subscribe=(
            lease,
            subjects.traces(ANY),
            "usage.>",
            "logs.>",
            *(_keys(bucket) for bucket in buckets),
            key_subject(subjects.REGISTRY_BUCKET, "app.>"),
            _keys(subjects.BUDGET_BUCKET),
        ),
    )


def agent(node: str, *, of_before: bool = False) -> BusUser:
    """One node's agent. What receivers believe of a node was published under its name.

    It may publish nowhere where a server of the bus answers: that answers with its own rights wherever it is told to,
    into a bucket or to its own requests. With `of_before` it may, as agents of before have to.
    """
    check_name(node, "node")
    streams = (
        subjects.usage(ANY, node, ANY),
        subjects.logs(ANY, node, ANY, ANY, ANY),
        *_gets(subjects.LAYOUT_BUCKET),
        *_gets(subjects.PLATFORM_BUCKET),
        key_subject(subjects.LAYOUT_BUCKET, node),
    )
    return _user(
        f"{AGENT}{node}",
        agent_inbox(node),
        publish=(
            subjects.beat(ANY, node),
            subjects.ran(ANY, node),
            subjects.blobs(ANY, node),
            subjects.renew(ANY, node),
            subjects.secrets(ANY, node),
            subjects.erased(ANY, node),
            subjects.credit(ANY, node),
            subjects.reply(ANY, ANY, node),
            subjects.nested(ANY, ANY, node),
            subjects.packages_locked(ANY, ANY, node),
            subjects.storage(ANY, node),
            *(streams if of_before else ()),
            "_CTL.*.*",  # its replies; each command names its own random subject
        ),
        subscribe=(
            subjects.run(ANY, node, ANY),
            subjects.control(ANY, node),
            subjects.link_offers(ANY, node, ANY),
            subjects.command(ANY, node),
            subjects.lock_packages(ANY, node),
            subjects.credits_wanted(ANY),
            f"_PL.{node}.>",  # NO_RESPONDERS for what it sends to gateways
        ),
    )


def agent_inbox(node: str) -> str:
    """The prefix of the reply subjects of a node's agent; whoever answers it publishes below, and nowhere else."""
    return f"_AGENT.{node}"


def connection_keeper() -> BusUser:
    """The user of the servers' own account that may list connections and close them."""
    inbox = "_KEEPER"
    return BusUser(
        name="keeper",
        inbox=inbox,
        publish=(f"{SERVER}.PING.CONNZ", f"{SERVER}.*.KICK", f"{inbox}.>"),
        subscribe=(f"{inbox}.>",),
    )


def everybody(nodes: Iterable[str], *, of_before: bool = False) -> tuple[BusUser, ...]:
    """`of_before`: agents may be of before gateways stored for them."""
    return (operator(), gateway(), controller(), duties(), *(agent(node, of_before=of_before) for node in nodes))


def authorization(
    users: Iterable[BusUser], password: Callable[[BusUser], str], admission: AdmissionKeys | None = None
) -> str:
    """The block of a server's configuration; `password` returns the text for a user's password, with any quotes.

    With `admission` the server asks gateways about connections that it does not know, so that nodes can join.
    """
    named = tuple(users)
    blocks = "\n".join(_block(user, f'user: "{user.name}", password: {password(user)}') for user in named)
    if admission is None:
        return f"authorization {{\n  users: [\n{blocks}\n  ]\n}}\n"
    known = ", ".join((*(json.dumps(user.name) for user in named), admission.keeper))
    asks = f"  auth_callout {{ issuer: {admission.issuer}, auth_users: [{known}] }}\n"
    keeper = _block(connection_keeper(), f"nkey: {admission.keeper}")
    return (
        f"authorization {{\n  users: [\n{blocks}\n  ]\n{asks}}}\n"
        f"accounts {{\n  $SYS {{ users: [\n{keeper}\n  ] }}\n}}\n"
    )


def _user(name: str, inbox: str, *, publish: tuple[str, ...], subscribe: tuple[str, ...]) -> BusUser:
    # A flush publishes to its own inbox.
    return BusUser(name=name, inbox=inbox, publish=(f"{inbox}.>", *publish), subscribe=(f"{inbox}.>", *subscribe))


def _makes_streams() -> tuple[str, ...]:
    names = [config["name"] for config in stream_configs(DEFAULT_LIMITS)]
    made = [(name, ("CREATE",) if name in KEPT_STREAMS else ("CREATE", "UPDATE")) for name in names]
    return tuple(f"{API}.STREAM.{verb}.{name}" for name, verbs in made for verb in verbs)


def _reads(stream: str) -> tuple[str, ...]:
    return (f"{API}.DIRECT.GET.{stream}", f"{API}.STREAM.INFO.{stream}")


def _works_off(stream: str) -> tuple[str, ...]:
    return (*_reads(stream), f"{API}.STREAM.PURGE.{stream}", f"{API}.STREAM.MSG.DELETE.{stream}")


def _gets(bucket: str) -> tuple[str, ...]:
    return (f"{API}.DIRECT.GET.{bucket_stream(bucket)}", f"{API}.STREAM.MSG.GET.{bucket_stream(bucket)}")


def _purged() -> tuple[str, ...]:
    buckets = (subjects.JOB_BUCKET, subjects.DELIVERY_BUCKET, subjects.SCALING_BUCKET)
    return (*map(bucket_stream, buckets), subjects.LOGS_STREAM, subjects.EVENTS_STREAM, subjects.COMPARED_STREAM)


def _purges(stream: str) -> tuple[str, ...]:
    return (f"{API}.STREAM.INFO.{stream}", f"{API}.STREAM.PURGE.{stream}")


def _erases(bucket: str) -> str:
    return f"{API}.STREAM.MSG.DELETE.{bucket_stream(bucket)}"


def _keys(bucket: str) -> str:
    return key_subject(bucket, ">")


def _among_gateways() -> tuple[str, ...]:
    return ("pl.*.gw.>", subjects.holdings_wanted(ANY), subjects.breakers(ANY), subjects.loads(ANY))


def _block(user: BusUser, identity: str) -> str:
    def listed(allowed: tuple[str, ...]) -> str:
        return "".join(f"\n          {json.dumps(subject)}" for subject in allowed)

    return (
        f"    {{\n      {identity}\n      permissions: {{\n"
        f"        publish: {{ allow: [{listed(user.publish)}\n        ] }}\n"
        f"        subscribe: {{ allow: [{listed(user.subscribe)}\n        ] }}\n      }}\n    }}"
    )


def main() -> None:
    """Print the users of a server's configuration."""
    parser = argparse.ArgumentParser(prog="python -m pilotlight_core.bus.bus_users", description=main.__doc__)
    parser.add_argument("nodes", nargs="*", help="that have a user of their own [local; none, where nodes may join]")
    parser.add_argument("--issuer", default="", help="lets other nodes join: A…, as 'node_issuer' prints it")
    parser.add_argument("--keeper", default="", help="beside --issuer: U…")
    parser.add_argument(
        "--agents-of-0.1", action="store_true", dest="of_before",
        help="while some are not replaced: their nodes are let into more than they should be",
    )  # fmt: skip
    given = parser.parse_args()
    admission = AdmissionKeys(issuer=given.issuer, keeper=given.keeper) if given.issuer and given.keeper else None
    nodes = given.nodes or ([] if admission else ["local"])
    text = authorization(everybody(nodes, of_before=given.of_before), lambda user: f"${user.variable}", admission)
    print(text, end="")  # noqa: T201 - it is what the command is for


if __name__ == "__main__":
    main()
