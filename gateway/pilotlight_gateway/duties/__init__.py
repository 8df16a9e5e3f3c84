"""Duties: work that one process at a time does for all gateways of a region.

`duty_serving` is the process, `leased` the loop of every duty, `duty_metrics` their metrics.

  ledger_folder  folds usage into the ledger
  log_trimmer    trims function logs
  webhook_duty   sends webhooks
  job_sweeper    repairs the work queue; `version_collector` and `orphan_blobs` delete versions and blobs that nothing
                 needs, as `bundle_files` knows of files
  schedule_duty  stores the jobs of schedules, of the `scheduled_versions`
  batch_duty     runs batches, with `batch_turns`, `batch_driver` and `batch_progress`

Entered by `python -m pilotlight_gateway.duties` alone.
"""
