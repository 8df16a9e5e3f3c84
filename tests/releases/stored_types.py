"""Every type that one process writes and another one, perhaps of another release, reads: messages, records, files."""

from __future__ import annotations

import typing
from importlib import import_module
from importlib.util import find_spec

import msgspec

from pilotlight_core.bus.lease import LeaseRecord
from pilotlight_core.host.foundations import Foundation
from pilotlight_core.model.api.webhook_api import DeliveryRecord, WebhookRecord
from pilotlight_core.model.devices import LayoutRecord
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.scheduling import HomeState
from pilotlight_core.model.messages.wire import MESSAGE
from pilotlight_core.model.records.batches import BatchChunk, BatchItem, BatchRecord
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_core.model.spec import Manifest, SignedManifest
from pilotlight_gateway.cluster.shard_plan import ShardRecord
from pilotlight_gateway.idempotency.key_record import FirstCall
from pilotlight_gateway.limits.limits_state import LimitState
from pilotlight_gateway.storage_quota.quota_shares import QuotaUsage
from pilotlight_gateway.tenancy.bootstrap import ClientFile
from pilotlight_runtime.calls.waiting_calls import WaitingCall
from pilotlight_runtime.metering import ended_shares
from pilotlight_runtime.metering.usage_log import AcknowledgedOffset, UsageRecord

#: Each release has it in the module that keeps them, wherever that release has its class.
ENDED_SHARE: type[msgspec.Struct] = vars(ended_shares)["EndedShare"]

#: Where a release has the kinds of its registry.
_KINDS = "pilotlight_core.host.records" if find_spec("pilotlight_core.host.records") else "pilotlight_core.host"
registry_records = import_module(f"{_KINDS}.registry_records")
DEPLOYED: dict[str, type[msgspec.Struct]] = registry_records.DEPLOYED
TENANCY: dict[str, type[msgspec.Struct]] = registry_records.TENANCY

#: Of buckets that older releases do not have.
NEW_RECORDS: tuple[type[msgspec.Struct], ...] = tuple(vars(registry_records).get("BUDGETS", {}).values())
if find_spec("pilotlight_core.host.key_sets"):
    key_sets = import_module("pilotlight_core.host.key_sets")
    NEW_RECORDS += (key_sets.KeySet, key_sets.SignedKeySet)
if find_spec("pilotlight_core.model.supply"):
    trust_records = import_module("pilotlight_core.model.supply.trust_records")
    NEW_RECORDS += (trust_records.TrustRecord,)
if find_spec("pilotlight_gateway.secrets"):
    secret_records = import_module("pilotlight_gateway.secrets.secret_records")
    NEW_RECORDS += (secret_records.SecretRecord, secret_records.DataKeyRecord, secret_records.PlatformKeyRecord)

STORED: tuple[type[msgspec.Struct], ...] = (
    *TENANCY.values(), *DEPLOYED.values(), LeaseRecord, Foundation, LayoutRecord, Binding, HomeState, BatchChunk,
    BatchItem, BatchRecord, JobRecord, SignedManifest, DeliveryRecord, WebhookRecord, ShardRecord, FirstCall,
    LimitState, QuotaUsage, WaitingCall, ENDED_SHARE, UsageRecord,
    *NEW_RECORDS,
)  # fmt: skip
FILES: tuple[type[msgspec.Struct], ...] = (Manifest, ClientFile, AcknowledgedOffset)

MESSAGES: dict[str, type[msgspec.Struct]] = {each.__name__: each for each in typing.get_args(MESSAGE)}
RECORDS = {each.__name__: each for each in STORED}
JSON_FILES = {each.__name__: each for each in FILES}
