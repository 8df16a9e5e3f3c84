"""The gateway: HTTP in front, homes and origins of calls behind, and the duties of a region.

A call enters by `http`, is held by `calls` until it is answered, and is queued by the `home` of its function, which
may be another gateway's: `cluster` says whose, and carries what one side tells the other. `limits`, `idempotency` and
`tenancy` say whether it may enter; `deploys` and `schemas` what it calls. `jobs`, `batches` and `webhooks` make calls
durable; `ledger` and `duties` turn usage into bills; `fleet` and `metrics` show how things are.

The root is the composition alone: `__main__`, `serving` and `settings`.
"""
