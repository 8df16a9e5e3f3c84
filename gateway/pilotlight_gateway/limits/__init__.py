"""What a tenant may ask for, held exactly over all gateways: see docs/design/counting-limits.md.

`limits_home` decides for a shard of tenants with `account` and `gcra` (rates) under a compiled `limit_policy`.
`limit_driver` asks it, here or at another gateway (`limits_outbox`), for callers that wait in `limiter`;
`limit_admission` is the result. `call_usage` measures a call, `cost_estimates` estimates the next, `limits_state` moves
with a shard.

Each gateway for itself: `api_rates` how often a tenant manages what it has, `tenant_slots` what runs at a time.

`http`, `jobs` and `calls` enter through `limits_port` and `call_usage`. The room knows `cluster`, never `calls` or
`home`.
"""
