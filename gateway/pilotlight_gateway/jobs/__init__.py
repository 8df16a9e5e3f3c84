"""Durable calls: stored before they are accepted, run by the home of their function, polled at any gateway.

`job_service` is what HTTP uses: submit, look up, wait, list, cancel, redrive. `bus_jobs` stores records behind
`job_port` (`memory_jobs` in tests), `job_payloads` stores large inputs and results, `job_publisher` announces stored
jobs in the work queue. At the home `job_dispatcher` reads that queue into a `job_flow` per flow and starts a
`job_runner` per job, which takes a `job_permit` of the tenant's limits and makes it a live call. `job_queue_client`
asks other gateways.

Entered by `http/endpoints`, `batches`, `duties` and the composition root (`gateway_jobs`).
"""
