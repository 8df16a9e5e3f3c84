"""The parts of one agent, built once and connected."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from pilotlight_core.bus import Bus
from pilotlight_core.host.config import AGENT_DRAIN_S, CACHE_BYTES
from pilotlight_core.host.supply.trust_keys import TrustKeys
from pilotlight_core.links import LinkFolder
from pilotlight_core.model.messages.node_messages import STOP_GRACE_S, Bind, HostShare, SandboxCeilings, SliceReport
from pilotlight_core.model.placing import Purchase
from pilotlight_runtime.calls.credits import Credits
from pilotlight_runtime.calls.gateway_links import GatewayLinks
from pilotlight_runtime.calls.nested_asks import NestedAsks
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.calls.origin_frames import OriginSender
from pilotlight_runtime.calls.remote_bodies import BodyTransfers
from pilotlight_runtime.calls.slot_table import SlotTable
from pilotlight_runtime.calls.waiting_calls import WaitingCalls
from pilotlight_runtime.containers.blanks.base_environment import BaseEnvironment
from pilotlight_runtime.containers.blanks.blank_pool import BlankPool
from pilotlight_runtime.containers.blanks.blank_pools import BlankPools
from pilotlight_runtime.containers.blanks.blank_starter import BlankStarter
from pilotlight_runtime.containers.blanks.resource_limits import blank_limits
from pilotlight_runtime.containers.blanks.slice_blanks import SliceBlanks
from pilotlight_runtime.containers.container import Container
from pilotlight_runtime.containers.containers import Containers
from pilotlight_runtime.containers.files.compile_cache import CompileCache
from pilotlight_runtime.containers.files.erased_tenants import ErasedFiles
from pilotlight_runtime.containers.files.evidence_check import EvidenceCheck
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.node_weights import NodeWeights
from pilotlight_runtime.containers.files.prefetcher import Prefetcher
from pilotlight_runtime.containers.files.staging import ManifestVerifier, Stager
from pilotlight_runtime.containers.files.version_files import VersionFiles
from pilotlight_runtime.containers.host_budget import HostBudget
from pilotlight_runtime.containers.parking import NodeParking
from pilotlight_runtime.containers.provisioner import Provisioner
from pilotlight_runtime.containers.secret_requests import SecretRequests
from pilotlight_runtime.containers.warm_memory import WarmMemory
from pilotlight_runtime.containers.weights_budget import WeightsBudget
from pilotlight_runtime.devices.device_port import Devices
from pilotlight_runtime.egress.proxy_supervisor import ProxySupervisor
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds
from pilotlight_runtime.environments.lock_answers import LockAnswers
from pilotlight_runtime.logs.log_shipper import LogShipper
from pilotlight_runtime.metering.container_meter import ContainerMeter, WorkKey, WorkLog
from pilotlight_runtime.metering.ended_shares import EndedShares, shares_in
from pilotlight_runtime.metering.slices import Slices
from pilotlight_runtime.metering.usage_log import UsageLog
from pilotlight_runtime.metering.usage_metering import Metering, boot_id
from pilotlight_runtime.metering.usage_recovery import recovered_usage
from pilotlight_runtime.node.agent_folders import NodeFolders
from pilotlight_runtime.node.node_reports import NodeIdentity, Reporter, features_of
from pilotlight_runtime.node.notices.kept_notices import NoticeKeeper
from pilotlight_runtime.node.notices.notice_drain import NoticeDrain
from pilotlight_runtime.node.notices.notice_port import NoticeSource
from pilotlight_runtime.node.package_builds import PackageNeeds, open_builds
from pilotlight_runtime.sandbox.sandbox_port import Launcher

log = structlog.get_logger(__name__)

COMPILED_PART = 8
"""What containers have compiled may take one part in so many of what versions' files may."""


@dataclass(frozen=True, kw_only=True)
class AgentDependencies:
    identity: NodeIdentity
    bus: Bus
    files: VersionFiles
    verifier: ManifestVerifier
    launcher: Launcher
    devices: Devices
    bases: tuple[BaseEnvironment, ...]
    folders: NodeFolders
    blanks: int
    """On CPU slots, of each base environment."""
    ceilings: SandboxCeilings
    host: HostShare
    """What its containers may be promised."""
    warm_memory: int = 0
    """Bytes of the host beside that, for parked containers and weights."""
    gpu_blanks: int = 0
    """On free slices of GPUs, at most, of all base environments together."""
    cache_bytes: int = CACHE_BYTES
    """Of versions' files that no container has."""
    packages: PackageNeeds = field(default_factory=PackageNeeds)
    """What requirements are built with."""
    links: LinkFolder | None = None
    """Where gateways of this machine find its socket; None: they all use the bus."""
    plain_links: bool = False
    """Whether links to other hosts may be in clear, as the bus is."""
    ca_file: str = ""
    """Of authorities that gateways' certificates may be of, beside certifi's."""
    egress_allow: str = ""
    """Networks that functions may be let out to although they are not public."""
    stop_grace_s: float = STOP_GRACE_S
    """How long started calls may go on that nobody wants any more."""
    drain_s: float = AGENT_DRAIN_S
    """For running calls when the agent stops."""
    notices: NoticeSource | None = None
    """Who says that the node is taken away; None: nobody is asked."""


@dataclass(frozen=True, kw_only=True)
class AgentParts:
    calls: NodeCalls
    slices: Slices
    metering: Metering
    work: WorkLog
    logs: LogShipper
    pools: BlankPools
    ways_out: ProxySupervisor
    builders_out: ProxySupervisor
    environments: EnvironmentBuilds
    locks: LockAnswers
    containers: Containers
    reporter: Reporter
    weights: NodeWeights
    notices: NoticeDrain
    erased: ErasedFiles
    prefetcher: Prefetcher

    def check_integrity(self) -> None:
        """Raise AssertionError if a slot, a slice or a nanosecond is counted twice or not at all."""
        self.calls.slots.check_integrity()
        self.containers.check_integrity()
        self.metering.check_integrity()


@dataclass(frozen=True, kw_only=True)
class AgentRecords:
    """The agent's files that outlive it."""

    usage_log: UsageLog
    ended_shares: EndedShares
    waiting: WaitingCalls

    def close(self) -> None:
        self.waiting.close()
        self.ended_shares.close()
        self.usage_log.close()


@asynccontextmanager
async def open_records(folders: NodeFolders) -> AsyncIterator[AgentRecords]:
    """The agent's records, open until the block ends; the log has what the agent before had told callers of.

    Raises:
        OSError: if they cannot be made, for instance because the disk is full.
    """
    records = await asyncio.to_thread(_opened_records, folders, boot_id())
    try:
        yield records
    finally:
        await asyncio.to_thread(records.close)


def _opened_records(folders: NodeFolders, boot: str) -> AgentRecords:
    with contextlib.ExitStack() as undo:
        usage_log = UsageLog(folders.usage, boot)
        undo.callback(usage_log.close)
        if usage_log.cut_bytes:
            log.warning("the usage log was torn by a crash", cut_bytes=usage_log.cut_bytes)
        # The notes are in the log before their files are made anew.
        left_behind = shares_in(folders.ended, boot)
        if left_behind and not usage_log.is_marked:  # what is written already might be billed twice
            log.error("usage of ended calls is given up: the usage log's mark cannot be read", calls=len(left_behind))
        elif recovered := recovered_usage(left_behind, usage_log.metered):
            usage_log.append(recovered)
            calls = sum(len(event.shares) for record in recovered for event in record.events)
            log.info("usage that the agent before had not written is recovered", calls=calls)
        ended_shares = EndedShares(folders.ended, boot)
        undo.callback(ended_shares.close)
        records = AgentRecords(
            usage_log=usage_log, ended_shares=ended_shares, waiting=WaitingCalls(folders.waiting, boot)
        )
        undo.pop_all()
    return records


def build_parts(needs: AgentDependencies, group: asyncio.TaskGroup, records: AgentRecords) -> AgentParts:
    """Make the parts and connect them; what they start runs in `group`."""
    me, report_due = needs.identity, asyncio.Event()
    metering = _metering(needs, records)
    guarantees = needs.launcher.guarantees()
    slices, work = Slices(needs.devices, metering, needs.warm_memory), WorkLog()
    host = HostBudget(needs.host)
    warm = WarmMemory(needs.warm_memory)
    parking = NodeParking(slices, host, warm, metering, changed=report_due.set, clock=time.monotonic)
    logs = LogShipper(needs.bus, region=me.region, node=me.node, instance=me.instance)
    calls = _calls(needs, group, records.waiting)
    pools = _pools(needs, group, slices, report_due.set)
    cache = FileCache(needs.folders.cache, needs.cache_bytes)
    compiles = CompileCache(needs.folders.compiled, needs.cache_bytes // COMPILED_PART)
    weights = NodeWeights(cache, WeightsBudget(warm, time.monotonic), changed=report_due.set)
    evidence = EvidenceCheck(needs.files, needs.verifier, TrustKeys(needs.bus))
    stager = Stager(needs.files, needs.verifier, cache, weights=weights, evidence=evidence)
    prefetcher = Prefetcher(stager)
    ways_out = ProxySupervisor(needs.egress_allow)
    secrets = SecretRequests(needs.bus, region=me.region, node=me.node)
    builders_out, environments = open_builds(
        needs.packages, needs.launcher, needs.bases, needs.folders, group, report_due.set
    )
    provisioner = Provisioner(stager, pools, needs.devices, needs.ceilings, ways_out, secrets, compiles, environments)

    def make_container(bind: Bind, part: SliceReport) -> Container:
        key = WorkKey(container=bind.container, version=bind.version, slice=part.id)
        logs.set_limit(bind.tenant, bind.log_bytes_per_hour)
        memory = part.memory or bind.host.memory
        meter = ContainerMeter(
            metering.slice(part.id), work, key, purpose=bind.purpose, memory=memory, core_ppm=bind.core_ppm,
            gib_ppm=bind.gib_ppm,
        )  # fmt: skip
        return Container(
            bind, part, provisioner=provisioner, calls=calls, meter=meter, logs=logs, parking=parking,
            stop_grace_s=needs.stop_grace_s,
        )  # fmt: skip

    containers = Containers(
        slices=slices,
        host=host,
        parking=parking,
        make=make_container,
        publisher=calls.credits,
        group=group,
        many_tenants=guarantees.many_tenants,
        changed=report_due.set,
        keep_blanks=pools.resize,
        prefetch=prefetcher.offer,
    )
    notices = NoticeDrain(needs.notices, NoticeKeeper(needs.folders.notice, boot_id()), containers, report_due.set)
    features = features_of(guarantees, builds=environments.can_build)
    reporter = Reporter(
        needs.bus, me, containers, pools, environments.cache, ceilings=needs.ceilings, features=features,
        due=report_due, clock=time.monotonic, weights=weights, notice=lambda: notices.notice,
    )  # fmt: skip
    return AgentParts(
        calls=calls,
        slices=slices,
        metering=metering,
        work=work,
        logs=logs,
        pools=pools,
        ways_out=ways_out,
        builders_out=builders_out,
        environments=environments,
        locks=LockAnswers(needs.bus, environments, group, region=me.region, node=me.node),
        containers=containers,
        reporter=reporter,
        notices=notices,
        weights=weights,
        erased=ErasedFiles(needs.bus, (cache, compiles, environments.cache), weights, region=me.region, node=me.node),
        prefetcher=prefetcher,
    )


def _metering(needs: AgentDependencies, records: AgentRecords) -> Metering:
    me = needs.identity
    return Metering(
        node=me.node,
        instance=me.instance,
        region=me.region,
        zone=me.zone,
        purchase=Purchase.SPOT if me.spot else Purchase.ON_DEMAND,
        slices=needs.devices.inventory(),
        usage_log=records.usage_log,
        ended_shares=records.ended_shares,
        store=needs.bus,
    )


def _pools(
    needs: AgentDependencies, group: asyncio.TaskGroup, slices: Slices, changed: Callable[[], None]
) -> BlankPools:
    starters = [
        BlankStarter(
            launcher=needs.launcher,
            base=base,
            folder=needs.folders.sandboxes,
            group=group,
            limits=blank_limits(needs.ceilings),
        )
        for base in needs.bases
    ]
    on_gpus = SliceBlanks(starters, needs.devices, slices, most=needs.gpu_blanks, changed=changed)
    slices.changed = on_gpus.check
    return BlankPools((BlankPool(each, size=needs.blanks, changed=changed) for each in starters), on_gpus)


def _calls(needs: AgentDependencies, group: asyncio.TaskGroup, waiting: WaitingCalls) -> NodeCalls:
    me = needs.identity
    slots = SlotTable(instance=me.instance)
    links = GatewayLinks(needs.bus, region=me.region, node=me.node, instance=me.instance)
    bodies = BodyTransfers(group, ca_file=needs.ca_file)
    call_soon = asyncio.get_running_loop().call_soon
    return NodeCalls(
        slots=slots,
        waiting=waiting,
        links=links,
        origins=OriginSender(
            needs.bus,
            links,
            f"_PL.{me.node}.{me.instance}",
            region=me.region,
            node=me.node,
            clock=time.monotonic,
            call_soon=call_soon,
        ),
        bodies=bodies,
        nested=NestedAsks(needs.bus, bodies, group, region=me.region, node=me.node, clock=time.monotonic),
        credits=Credits(
            needs.bus,
            links,
            region=me.region,
            node=me.node,
            instance=me.instance,
            epoch_of=slots.epoch,
            call_soon=call_soon,
        ),
    )
