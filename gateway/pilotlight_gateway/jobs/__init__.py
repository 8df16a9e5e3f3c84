"""Durable calls: stored before they are accepted, run by the home of their function, polled at any gateway.

HTTP uses `job_service`. `bus_jobs` stores records behind `job_port` (`memory_jobs` in tests), `job_payloads` large
inputs and results. `job_publisher` writes the work queue, for `job_queue_client`. At the home `job_dispatcher` reads it
into a `job_flow` per flow and starts a `job_runner` per job: `job_calls` makes it a call, `job_start` writes its start
under a `job_permit`, `job_results` stores its output, `job_record_writer` its record.

Entered by `http.endpoints`, `batches`, `duties` and the composition root (`gateway_jobs`).
"""
