"""The lists by which `tools.words` judges names. `docs/design/words.md` explains the words that stay."""

from __future__ import annotations

GENERIC = {
    "port": "says nothing of what is asked for: `call_port`, `blob_store`",
    "duty": "says nothing of what it does: `webhook_duty`, `batch_duty`",
    "desk": "is an API service: `job_service`, `batch_service`",
    "service": "says nothing of what it serves: `job_service`",
    "services": "says nothing of what they serve",
    "manager": "says nothing of what it does",
    "record": "says nothing of what is recorded: `decision_record`, `key_record`",
    "records": "says nothing of what is recorded",
    "internal": "says nothing of what is inside: `large_bodies`",
    "utils": "is where things go that have no place: name the thing",
    "util": "is where things go that have no place: name the thing",
    "helpers": "is where things go that have no place: name the thing",
    "helper": "is where things go that have no place: name the thing",
    "common": "is where things go that have no place: name the thing",
    "misc": "is where things go that have no place: name the thing",
    "tools": "is where things go that have no place: name the thing",
    "data": "is everything",
    "things": "is everything",
}
"""Names that say nothing outside their room -> why."""

PRIVATE = {
    "actions": "is `effects`",
    "agenda": "is `delivery_schedule`",
    "alarms": "is `timers`",
    "announcer": "is `job_publisher`",
    "aside": "is `quarantine`",
    "asking": "is `job_rpc`",
    "burial": "is `lease_cleanup`",
    "cells": "is `device_classes`",
    "collector": "is `gc_tuning`",
    "convoy": "is `group_commit`",
    "dialects": "is `migration_hints`",
    "elsewhere": "is `remote_lookup`",
    "errands": "is `durable_map`",
    "face": "is anyio's `blocking_portal`",
    "feeder": "is `job_dispatcher`",
    "gate": "is `prepared_call`, or `drain_gate`",
    "held": "is `accepted_call`",
    "invitation": "is `example_commands`",
    "keeping": "is `reservation`",
    "lines": "is `tier_queue`, or `input_lines`",
    "live": "is `call_book`",
    "losses": "is `breakers`",
    "mailbox": "is `router`",
    "mail": "is `router`",
    "marks": "is `markers`",
    "names": "is a `resolver` of them",
    "namesakes": "is `identity_guard`",
    "needs": "is `memory_need`",
    "obstacles": "is `diagnostics`",
    "pace": "is `start_rate`, `poll_backoff`",
    "past": "is `replay`",
    "performer": "is `origins`",
    "possible": "is `feasibility`",
    "poster": "is `http_sender`",
    "rim": "is `container_io`",
    "rings": "is `pending_reads`",
    "room": "is `storage_quota`",
    "rooms": "is `container_pool`",
    "silence": "is `availability`",
    "solo": "is `serial_server`",
    "standing": "is `prepared_call`",
    "strangers": "is `redaction`",
    "tabs": "is `usage`",
    "telling": "is `api_views`",
    "ways": "is `preemption`",
    "works": "is `plan_execution`",
}
"""Words that one has to be told -> the field's."""

RESOURCES = ("pilotlight_gateway.http.", "pilotlight.cli.", "pilotlight.client.")
"""Rooms whose modules are named after the resources of the API."""

VAGUE_VERBS = {
    "bury": "`forget`, `clean_up` or `destroy`",
    "distrust": "`invalidate`, or say that it kills",
    "forgo": "`refund`",
    "hear": "`update`, `receive` or `on_...`",
    "heard": "`on_...`, or `last_report_at` for an instant",
    "heed": "`read_...` or `apply`",
    "hope": "`expected_value`",
    "insist": "`retry_...`",
    "look": "`read`, `refresh`, `inspect`, `poll` or `find_...`",
    "loosen": "`release`",
    "mend": "`repair_...`, `republish_...`",
    "mind": "`watch`",
    "say": "`log`, `send` or `describe`",
    "said": "`..._text`, or `..._of` what is read from it",
    "speak": "`report_...`",
    "stir": "`wake`",
    "tell": "`send`, `notify`, `publish` or `report`",
    "told": "`..._info` or `..._report` for what is shown, `on_...` for what has come",
}
"""First words of functions that say too little of what is done -> what to say."""

VERBS = frozenset(
    """
    abandon abort accept acknowledge aclose acquire activate add adjust admit advance age allocate allow answer append
    apply arm ask audit authenticate await begin bind block bring buffer build call cancel carry change charge check
    checkpoint choose claim clean cleanup clear close collect commit compile configure connect copy correct count cover
    create cut deactivate decide decline delete deliver deploy describe destroy detach disable disarm discard dispatch
    drain draw drive drop empty enable encode end enqueue ensure enter evict execute exit expect expire explain export
    extend fail fetch fill finish flush fold follow force forget forward free freeze gather get give grant grow halt
    handle hang hide hold ignore inherit insert install join keep kill lay lead learn leave limit link listen load
    lock log lose make mark measure merge move note notify observe offer open order pack park pause perform pick ping
    place
    poll pop post postpone preempt prepare print probe prune publish pull pump purge push put quarantine raise read
    rebase receive reconcile record recover recut redrive refresh refund refuse register relay release remove rename
    renew reopen repair repeat replace report republish require rescale rescore resend reserve reset resize resolve
    restart restore resume retire retry retune return revert review revoke ring rotate run save schedule see select
    send serve set settle setup shape share shed ship show shrink shut skip sleep spend stage start stop store stream
    submit subscribe supersede supervise sweep switch sync take terminate thaw tick tidy touch transition trim trip try
    undo unload
    unpark unshare unsubscribe update upgrade upload use vacate validate verify wait wake walk warm watch withdraw wrap
    write
    """.split()  # noqa: SIM905 - a list that is read and edited as words
)
"""What functions do that return nothing."""

EVENTS = frozenset({
    "begun", "came", "died", "done", "gone", "known", "left", "lost", "made", "ran", "read", "seen", "sent", "shut",
    "taken", "withdrawn", "woken", "written",
})  # fmt: skip
"""Participles and past tenses that do not end in -ed."""

CONCEPTS = {
    ("call", "str"): "a call's id: `call_id`",
    ("grant", "int"): "a grant's number: `grant_number`",
    ("accepted", "float"): "an instant: `accepted_at`",
    ("added", "float"): "an instant: `added_at`",
    ("arrived", "float"): "an instant: `arrived_at`",
    ("began", "float"): "an instant: `began_at`",
    ("born", "float"): "an instant: `born_at`",
    ("deadline", "float"): "an instant, `deadline_at`, or a duration, `deadline_s`, `deadline_ms`",
    ("due", "float"): "an instant: `due_at`",
    ("ends_by", "float"): "an instant: `deadline_at`",
    ("executed", "float"): "an instant: `executed_at`",
    ("heard", "float"): "an instant: `heard_at`",
    ("hold", "float"): "a duration: `hold_s`, `hold_ms`",
    ("leaves", "float"): "an instant or a duration: `leaves_at`, `remaining_ms`",
    ("patience", "float"): "a duration: `timeout_s`",
    ("pause", "float"): "a duration: `pause_s`",
    ("probed", "float"): "an instant: `probed_at`",
    ("pushed", "float"): "an instant: `pushed_at`",
    ("ready", "float"): "an instant: `ready_at`",
    ("received", "float"): "an instant: `received_at`",
    ("renewed", "float"): "an instant: `renewed_at`",
    ("sent", "float"): "an instant: `sent_at`",
    ("start_by", "float"): "an instant: `start_deadline_at`",
    ("started", "float"): "an instant: `started_at`",
    ("took", "float"): "a duration: `took_s`",
    ("until", "float"): "an instant: `expires_at`, `ends_at`",
    ("wait", "float"): "a duration: `wait_s`, `wait_ms`",
    ("waited", "float"): "a duration: `waited_s`",
    ("within", "float"): "a duration: `within_s`, `within_ms`",
}
"""(name, type) of fields and parameters that have another name -> which."""
