"""Limits of the bytes that a tenant stores in jobs, results and idempotency keys, over all gateways.

  quota_shares  the arithmetic of the records
  quota_lease   takes blocks of a tenant's quota, and spends them in this gateway
  job_quota     applies it to jobs
  quota_port    the port of the records: `bus_quota`, and `memory_quota` in tests

Entered by `idempotency`, `jobs`, `batches` and the composition root. Imports nothing else of the gateway.
"""
