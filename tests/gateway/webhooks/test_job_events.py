"""What a webhook is sent of a job's record: that it ended, and how."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.api.webhook_api import WebhookEvent
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_core.model.tracing.trace_context import ROOT, own_trace_id, span_id_of
from pilotlight_gateway.webhooks.job_events import LONGEST_DETAIL, event_of
from tests.builders.jobs import dead_job, job
from tests.gateway.webhooks.makers import webhook_of

RUN = "call_local_1_00000000000000000007"
WEBHOOK = webhook_of("acme", id="wh_00000000000000000001")


def data_of(record: JobRecord) -> dict[str, Any] | None:
    """The data of the event that a record is."""
    made = event_of(msgspec.msgpack.encode(record), WEBHOOK)
    return None if made is None else msgspec.json.decode(made.body)["data"]


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
def test_a_job_that_has_not_ended_is_no_event(state: JobState) -> None:
    """Its record is written at every change."""
    assert data_of(job(state=state)) is None


def test_a_webhook_hears_of_the_states_that_it_listens_to() -> None:
    """Of no other."""
    record = msgspec.msgpack.encode(dead_job())
    assert event_of(record, webhook_of("acme", events=(WebhookEvent.SUCCEEDED,))) is None
    made = event_of(record, webhook_of("acme", events=(WebhookEvent.FAILED,)))

    assert made is not None
    assert made.event == WebhookEvent.FAILED


def test_a_success_says_where_its_result_is_and_not_what() -> None:
    """Whoever has the address need not have the right to read it."""
    data = data_of(job(state=JobState.SUCCEEDED, output=b"\xa6secret", started_at=150.0, ended_at=200.0, attempts=2))

    assert data is not None
    assert data["url"] == f"/v1/calls/{job().id}"
    assert (data["state"], data["function"], data["attempts"]) == ("succeeded", "shop.hello@v1", 2)
    assert (data["started_at"], data["ended_at"]) == (150.0, 200.0)
    assert {"reason", "error", "output"}.isdisjoint(data)


def test_a_failure_says_why_in_few_words() -> None:
    """Without the traceback."""
    dead = dead_job()
    assert dead.error is not None
    data = data_of(msgspec.structs.replace(dead, error=msgspec.structs.replace(dead.error, detail="x" * 5_000)))

    assert data is not None
    assert data["reason"] == "raised"
    assert data["error"] == {"code": "function_raised", "detail": "x" * LONGEST_DETAIL}


def test_each_round_of_a_job_is_an_event_of_its_own() -> None:
    """One that was driven again has ended again."""
    ids = set()
    for redrives in (0, 1):
        made = event_of(msgspec.msgpack.encode(dead_job(redrives=redrives)), WEBHOOK)
        assert made is not None
        ids.add(made.id)
    assert len(ids) == 2


def test_what_is_no_record_is_refused() -> None:
    """Whoever reads the stream goes on behind it."""
    with pytest.raises(msgspec.DecodeError):
        event_of(b"\xc1", WEBHOOK)


def test_an_event_belongs_to_the_trace_of_the_jobs_last_run() -> None:
    """It is sampled if the request that stored the job asked for that."""
    asked = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for came, flags in ((asked, "03"), ("", "02")):
        made = event_of(msgspec.msgpack.encode(dead_job(run=RUN, traceparent=came)), WEBHOOK)
        assert made is not None
        assert made.traceparent == f"00-{own_trace_id(RUN)}-{span_id_of(RUN, ROOT)}-{flags}"
