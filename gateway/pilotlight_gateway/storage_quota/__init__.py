"""How many bytes a tenant may store of jobs, results and idempotency keys, counted over all gateways.

`quota_shares` are the records' arithmetic, `quota_lease` is the part of a tenant's quota that this gateway has taken
and spends, `job_quota` says what a job needs. `bus_quota` stores the records behind `quota_port` (`memory_quota` in
tests).

Entered by `idempotency`, `jobs`, `batches` and the composition root. Imports nothing else of the gateway.
"""
