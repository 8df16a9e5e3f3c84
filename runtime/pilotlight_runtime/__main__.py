"""`python -m pilotlight_runtime`: the agent of one node, until SIGTERM or SIGINT."""

from __future__ import annotations

from pilotlight_core.lean_libraries import structlog  # isort: skip # before what would import it whole

import asyncio
import signal
import sys
import time
from contextlib import aclosing
from functools import partial
from pathlib import Path

import uvloop

from pilotlight_core.bus import Bus, BusError, bus_users, connect
from pilotlight_core.bus.bus_tls import is_in_clear
from pilotlight_core.host import config, telemetry
from pilotlight_core.host.blobs import BlobBackend, BlobStore, NoBlobStore, open_blobs
from pilotlight_core.host.blobs.store_names import name_of_store
from pilotlight_core.host.compiled import IS_COMPILED
from pilotlight_core.host.foundations import Foundation, Foundations, WrongFoundation
from pilotlight_core.host.gc_tuning import freeze
from pilotlight_core.host.key_set_records import KeySets
from pilotlight_core.host.metrics import CannotListen, measured_process
from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_core.host.signing import NoKey, Verifier
from pilotlight_core.links import LinkFolder
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.node_messages import SandboxCeilings
from pilotlight_runtime.containers.blanks.base_environment import BaseEnvironment, other_environments, own_environment
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from pilotlight_runtime.containers.files.version_files import BlobQuestions, LinkedFiles, StoredFiles, VersionFiles
from pilotlight_runtime.devices.cpu_slots import CpuDevices, usable_cores
from pilotlight_runtime.devices.several_devices import SeveralDevices
from pilotlight_runtime.node.agent import open_agent
from pilotlight_runtime.node.agent_folders import NodeFolders, NodeTaken, own_folders
from pilotlight_runtime.node.agent_parts import AgentDependencies
from pilotlight_runtime.node.asked_storage import AskedStorage
from pilotlight_runtime.node.host_capacity import MIB, gpu_blanks, host_capacity, split_warm
from pilotlight_runtime.node.node_credentials import CredentialRenewal, NodeCredentials, with_credentials
from pilotlight_runtime.node.node_gpus import open_gpus
from pilotlight_runtime.node.node_reports import NodeIdentity
from pilotlight_runtime.node.notices.notice_sources import notice_source
from pilotlight_runtime.node.package_builds import package_needs
from pilotlight_runtime.sandbox.launchers import launcher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError

log = structlog.get_logger(__name__)

CONNECT_S = 30.0
EXPECTED = (NodeTaken, BadInput, SandboxError, BusError, WrongFoundation, NoBlobStore, CannotListen)
"""Errors that end it with a line in the log."""


def open_store(settings: config.AgentSettings) -> BlobBackend | None:
    """The store of blobs; None: it is S3, of which a node is given what its containers need, and has no access."""
    if settings.blob_url.startswith("s3:"):
        return None
    return open_blobs(settings.blob_url or settings.default_blob_url)


def files_of(blobs: BlobBackend | None, gateways: BlobQuestions) -> VersionFiles:
    """Where the files of versions come from."""
    return LinkedFiles(gateways) if blobs is None else StoredFiles(blobs, gateways)


def open_bases(settings: config.AgentSettings, *, walled: bool) -> tuple[BaseEnvironment, ...]:
    """The agent's own environment, and those that its settings name; see `other_environments`."""
    others = other_environments(settings.base, settings.preimport, walled=walled)
    return (own_environment(settings.preimport), *others)


def ceilings(settings: config.AgentSettings) -> SandboxCeilings:
    """The most that functions may ask for here; a function's memory bounds the first two anyway."""
    return SandboxCeilings(
        shm=(settings.most_shm or config.MOST_MIB) * MIB,
        scratch=(settings.most_scratch or config.MOST_MIB) * MIB,
        pids=settings.most_pids,
    )


async def own_foundation(blobs: BlobStore | None, keys: TrustedKeys, registered: Foundation) -> Foundation:
    """What this agent has in common with its platform.

    Raises:
        WrongFoundation: it has no key to verify manifests with. NoBlobStore: there is no blob store.
    """
    key = await keys.foundation_key(registered)
    return Foundation(manifest_key=key, blob_store=await name_of_store(blobs) if blobs else "")


def check_given(settings: config.AgentSettings) -> None:
    """Who names a file of keys has one; that of a gateway with the same folders may come later.

    Raises:
        WrongFoundation. BadInput: the networks of --egress-allow are none.
    """
    read_networks(settings.egress_allow, "egress_allow")
    try:
        notice_source(settings.notices)
        if settings.trusted_keys:
            Verifier.load_all(settings.trusted)
    except NoKey as error:
        raise WrongFoundation(f"--trusted-keys: {error.detail}") from None


async def serve(
    settings: config.AgentSettings, folders: NodeFolders, credentials: NodeCredentials | None = None
) -> None:
    """Run the agent until SIGTERM or SIGINT; with `credentials` it connects by them, and renews them.

    Raises:
        BadInput, BusError, SandboxError: if it cannot run.
        WrongFoundation, NoBlobStore: it has another key or blob store than its platform, or none.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    identity = NodeIdentity(
        node=settings.node,
        instance=token(),
        region=settings.region,
        zone=settings.zone,
        sandbox=settings.sandbox,
        spot=settings.spot,
        pool=settings.pool,
        provider_id=settings.provider_id,
    )
    check_given(settings)
    host, warm_memory = split_warm(host_capacity(settings), settings)
    packages = package_needs(settings)
    started, blobs = launcher(settings.sandbox), open_store(settings)
    try:
        bases = await asyncio.to_thread(open_bases, settings, walled=started.guarantees().own_filesystem)
        async with (
            open_gpus(settings, folders.fake_gpus) as gpus,
            connect(
                settings.nats_url,
                name=f"agent {settings.node}",
                inbox=bus_users.agent(settings.node).inbox,
                ca_file=settings.ca_file,
                makes_streams=False,
                timeout=CONNECT_S,
                key=credentials.key() if credentials is not None else None,
                storage=lambda inbox: AskedStorage(inbox, subjects.storage(settings.region, settings.node)),
            ) as bus,
            aclosing(files_of(blobs, BlobQuestions(bus, region=settings.region, node=settings.node))) as files,
        ):
            keys = TrustedKeys(settings.trusted, KeySets(bus, region=settings.region), folders.newest_keys)
            needs = AgentDependencies(
                identity=identity,
                bus=bus,
                files=files,
                verifier=keys,
                launcher=started,
                devices=SeveralDevices(CpuDevices(settings.cpu_slots or usable_cores()), *gpus),
                bases=bases,
                ceilings=ceilings(settings),
                folders=folders,
                blanks=settings.blanks,
                gpu_blanks=gpu_blanks(settings),
                cache_bytes=settings.cache_bytes,
                stop_grace_s=settings.stop_grace,
                drain_s=settings.drain_seconds,
                notices=notice_source(settings.notices),
                host=host,
                warm_memory=warm_memory,
                links=LinkFolder(settings.links),
                plain_links=is_in_clear(settings.nats_url, settings.ca_file),
                ca_file=settings.ca_file,
                egress_allow=settings.egress_allow,
                packages=packages,
            )
            foundations = Foundations(bus, region=settings.region)
            own = partial(own_foundation, blobs, keys)
            known = await foundations.check(own)
            freeze()
            log.info(
                "the agent is up",
                node=identity.node, instance=identity.instance, sandbox=identity.sandbox, compiled=IS_COMPILED,
            )  # fmt: skip
            async with open_agent(needs) as agent, asyncio.TaskGroup() as group:
                checking = None if known else group.create_task(foundations.check_until_known(own))
                renewing = _renewing(bus, settings, credentials, group)
                async with measured_process(settings, bus, agent.metrics.collect, watch=agent.loop_watch):
                    await agent.run(stop)
                for task in filter(None, (checking, renewing)):
                    task.cancel()
    finally:
        started.close()


def _renewing(
    bus: Bus, settings: config.AgentSettings, credentials: NodeCredentials | None, group: asyncio.TaskGroup
) -> asyncio.Task[None] | None:
    if credentials is None:
        return None
    path = Path(settings.credentials).expanduser()
    return group.create_task(CredentialRenewal(bus, path, credentials, time.time).run())


def main() -> int:
    """Run the agent; 0 when it ended in order."""
    settings = config.load(config.AgentSettings, "The agent of one node: sandboxes, calls, metering.")
    telemetry.setup("agent")
    try:
        settings, credentials = with_credentials(settings, time.time())
        with (
            own_folders(settings.state_dir, settings.node) as folders,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            runner.run(serve(settings, folders, credentials))
    except EXPECTED as error:
        return _failed(error)
    except BaseExceptionGroup as group:  # of the task group in which a part of it ran
        if (expected := group.subgroup(EXPECTED)) is None:
            raise
        return _failed(expected)
    return 0


def _failed(error: BaseException) -> int:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    log.error("the agent cannot run", error=error.detail if isinstance(error, BadInput) else str(error))
    return 1


if __name__ == "__main__":
    sys.exit(main())
