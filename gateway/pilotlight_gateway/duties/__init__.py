"""Duties: what is done once for all gateways, in a process of its own, each duty under its own lease.

`duty_serving` is the process. `ledger_folder` folds usage into the ledger, `log_trimmer` trims function logs,
`webhook_duty` sends webhooks, `job_sweeper` mends the work queue of jobs and `orphan_blobs` finds blobs nobody needs,
`batch_duty` drives batches: `batch_turns` says whose turn it is, `batch_driver` submits items, `batch_progress`
counts them. `duty_metrics` shows how they are.

Entered by `python -m pilotlight_gateway.duties` alone.
"""
