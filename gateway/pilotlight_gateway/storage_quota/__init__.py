"""How many bytes a tenant may store of jobs, results and idempotency keys, counted over all gateways.

`quota_shares` are the records' arithmetic, `quota_lease` is the part of a tenant's quota that this gateway has taken
and spends, `job_quota` says what a job needs.

Entered by `idempotency`, `jobs` and `batches`.
"""
