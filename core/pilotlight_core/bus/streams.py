"""The configurations of the platform's streams and buckets.

There are no consumers: readers ask by sequence, so no consumer can be lost or has to be restored.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model import subjects

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
MARKER_TTL = 120
"""Seconds for which a deleted or expired key leaves a marker, from which mirrors learn of its end."""


KEPT_STREAMS = frozenset({subjects.AUDIT_STREAM})
"""Made once, and changed by the operator alone: no process may shorten what they keep."""


class StreamLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much each stream may hold.

    Of logs and of the audit log the oldest go first. Usage, jobs and buckets refuse new entries instead; the duties
    make room in usage.
    """

    usage_days: int = 400
    usage_bytes: int = 4 * 2**30
    logs_hours: int = 24
    logs_bytes: int = 2 * 2**30
    logs_batches_per_function: int = 20_000
    tenancy_bytes: int = 256 * 2**20
    registry_bytes: int = 2**30
    leases_bytes: int = 64 * 2**20
    shards_bytes: int = 64 * 2**20
    idempotency_bytes: int = 2 * 2**30
    idempotency_keys: int = 2_000_000
    jobs_bytes: int = 8 * 2**30
    jobs: int = 5_000_000
    batches_bytes: int = 256 * 2**20
    batches: int = 100_000
    webhooks_bytes: int = 128 * 2**20
    deliveries_bytes: int = 2 * 2**30
    deliveries: int = 500_000
    job_queue_bytes: int = 2**30
    job_queue_days: int = 61
    """The longest that a job may wait for its time and then for a container."""
    layouts_bytes: int = 64 * 2**20
    platform_bytes: int = 2**20
    bindings_bytes: int = 256 * 2**20
    scaling_bytes: int = 128 * 2**20
    scaling_days: int = 30
    budgets_bytes: int = 128 * 2**20
    secrets_bytes: int = 128 * 2**20
    blob_keys_bytes: int = 64 * 2**20
    audit_days: int = 400
    audit_bytes: int = 2**30
    audit_records_per_tenant: int = 10_000
    events_days: int = 30
    events_bytes: int = 128 * 2**20
    events_per_kind: int = 5_000
    """Of one tenant; of what concerns none, of one kind too."""
    compared_hours: int = 48
    compared_bytes: int = 512 * 2**20
    compared_per_app: int = 200_000
    evidence_bytes: int = 64 * 2**20
    replicas: int = 1


DEFAULT_LIMITS = StreamLimits()


def bucket_stream(bucket: str) -> str:
    return f"KV_{bucket}"


def key_subject(bucket: str, key: str) -> str:
    return f"$KV.{bucket}.{key}"


def stream_configs(limits: StreamLimits) -> tuple[dict[str, Any], ...]:
    """The configurations in order of importance."""
    return (
        _bucket(subjects.TENANCY_BUCKET, limits, max_bytes=limits.tenancy_bytes) | {"allow_msg_ttl": True},
        _bucket(subjects.REGISTRY_BUCKET, limits, max_bytes=limits.registry_bytes) | {"allow_msg_ttl": True},
        _bucket(subjects.LEASE_BUCKET, limits, max_bytes=limits.leases_bytes)
        # Such markers need rollups, so a writer of leases could remove others; deleted keys have markers without.
        | {"allow_msg_ttl": True, "subject_delete_marker_ttl": MARKER_TTL * SECOND},
        _bucket(subjects.SHARD_BUCKET, limits, max_bytes=limits.shards_bytes),
        # No markers: nothing mirrors it.
        _bucket(subjects.IDEMPOTENCY_BUCKET, limits, max_bytes=limits.idempotency_bytes)
        | {"allow_msg_ttl": True, "max_msgs": limits.idempotency_keys},
        # No markers: nothing mirrors it either.
        _bucket(subjects.JOB_BUCKET, limits, max_bytes=limits.jobs_bytes)
        | {"allow_msg_ttl": True, "allow_atomic": True, "max_msgs": limits.jobs},
        # No markers: a mirror that was disconnected reads the whole bucket again.
        _bucket(subjects.BATCH_BUCKET, limits, max_bytes=limits.batches_bytes)
        | {"allow_msg_ttl": True, "max_msgs": limits.batches},
        _bucket(subjects.WEBHOOK_BUCKET, limits, max_bytes=limits.webhooks_bytes) | {"allow_msg_ttl": True},
        _bucket(subjects.DELIVERY_BUCKET, limits, max_bytes=limits.deliveries_bytes)
        | {"allow_msg_ttl": True, "max_msgs": limits.deliveries},
        _stream(subjects.JOB_STREAM, ["jobs.>"], limits)
        | {
            "retention": "workqueue",
            "discard": "new",
            "max_age": limits.job_queue_days * DAY,
            "max_bytes": limits.job_queue_bytes,
        },
        _bucket(subjects.LAYOUT_BUCKET, limits, max_bytes=limits.layouts_bytes),
        # No lifetimes: no server takes them back, and gateways of 0.1, which have it without, would not start again.
        _bucket(subjects.PLATFORM_BUCKET, limits, max_bytes=limits.platform_bytes),
        _bucket(subjects.BINDING_BUCKET, limits, max_bytes=limits.bindings_bytes) | {"allow_msg_ttl": True},
        # No markers: nothing mirrors it.
        _bucket(subjects.SCALING_BUCKET, limits, max_bytes=limits.scaling_bytes)
        | {"max_age": limits.scaling_days * DAY},
        _bucket(subjects.BUDGET_BUCKET, limits, max_bytes=limits.budgets_bytes) | {"allow_msg_ttl": True},
        # Keys that are destroyed are overwritten on disk, which only deleting their message does.
        _bucket(subjects.SECRET_BUCKET, limits, max_bytes=limits.secrets_bytes)
        | {"allow_msg_ttl": True, "deny_delete": False},
        _bucket(subjects.BLOB_KEY_BUCKET, limits, max_bytes=limits.blob_keys_bytes) | {"deny_delete": False},
        _stream(subjects.USAGE_STREAM, ["usage.>"], limits)
        # Agents keep what is refused; what would go for it may not be folded yet.
        | {"discard": "new", "max_age": limits.usage_days * DAY, "max_bytes": limits.usage_bytes},
        _stream(subjects.LOGS_STREAM, ["logs.>"], limits)
        | {
            "max_age": limits.logs_hours * 3600 * SECOND,
            "max_bytes": limits.logs_bytes,
            "max_msgs_per_subject": limits.logs_batches_per_function,
        },
        _stream(subjects.EVENTS_STREAM, ["events.>"], limits)
        | {
            "max_age": limits.events_days * DAY,
            "max_bytes": limits.events_bytes,
            "max_msgs_per_subject": limits.events_per_kind,
        },
        _stream(subjects.COMPARED_STREAM, ["compared.>"], limits)
        | {
            "max_age": limits.compared_hours * 3600 * SECOND,
            "max_bytes": limits.compared_bytes,
            "max_msgs_per_subject": limits.compared_per_app,
        },
        _bucket(subjects.EVIDENCE_BUCKET, limits, max_bytes=limits.evidence_bytes) | {"allow_msg_ttl": True},
        _stream(subjects.AUDIT_STREAM, ["audit.>"], limits)
        | {
            "max_age": limits.audit_days * DAY,
            "max_bytes": limits.audit_bytes,
            "max_msgs_per_subject": limits.audit_records_per_tenant,
            "deny_delete": True,
            "deny_purge": True,
        },
    )


def _stream(name: str, topics: list[str], limits: StreamLimits) -> dict[str, Any]:
    return {
        "name": name,
        "subjects": topics,
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "num_replicas": limits.replicas,
        "duplicate_window": 120 * SECOND,
        "allow_direct": True,
    }


def _bucket(name: str, limits: StreamLimits, *, max_bytes: int) -> dict[str, Any]:
    return _stream(bucket_stream(name), [f"$KV.{name}.>"], limits) | {
        "max_msgs_per_subject": 1,
        "max_bytes": max_bytes,
        "discard": "new",
        # A rollup of "all" would let the writer of one key remove every other.
        "allow_rollup_hdrs": False,
        "deny_delete": True,
    }
