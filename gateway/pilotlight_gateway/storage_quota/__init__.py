"""Limits of the bytes that a tenant stores, over all gateways: jobs, results and idempotency keys.

  quota_shares  the arithmetic of the records
  quota_lease   takes and spends blocks of a tenant's quota
  job_quota     applies it to jobs
  quota_port    the port of the records; `bus_quota` is the real one

Entered by `idempotency`, `jobs`, `batches` and the composition root. Imports nothing else of the gateway.
"""
