"""The gateway: HTTP in front, homes and origins of calls behind, and the duties of a region.

A call enters by `http`, is held by `calls` until it is answered, and is queued by the `home` of its function at this
gateway or another; `cluster` connects them. `tenancy`, `limits` and `idempotency` admit it; `deploys` and `schemas`
say what it calls. `jobs`, `batches` and `webhooks` make calls durable; `ledger` and `duties` turn usage into bills;
`fleet` and `metrics` report.

The root composes them: `__main__`, `serving`, `settings` and what these use.
"""
