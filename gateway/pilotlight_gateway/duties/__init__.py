"""Duties: what is done once for all gateways, in a process of its own, each duty under a lease (`leased`).

`duty_serving` is the process. `ledger_folder` folds usage into the ledger, `log_trimmer` trims function logs,
`webhook_duty` sends webhooks, `job_sweeper` repairs the work queue, `orphan_blobs` finds unneeded blobs, `batch_duty`
drives batches: `batch_turns` orders them, `batch_driver` submits items, `batch_progress` counts them. `duty_metrics`
shows all of it.

Entered by `python -m pilotlight_gateway.duties` alone.
"""
