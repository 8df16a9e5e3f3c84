"""What a tenant may ask for, held exactly over all gateways: see docs/limits.md.

`limits_home` decides for the shard of a tenant with `account`, `gcra` (rates) and `permits` (concurrency) under a
compiled `limit_policy`; `limit_driver` asks it, here or at another gateway (`limits_outbox`), for callers that wait
in `limiter`, and `limit_admission` is what came of one ask. `call_usage` is what a call has cost so far,
`cost_estimates` what it will, `limits_state` what moves with a shard.

Entered by `http`, `jobs` and `calls` through `limits_port`.
"""
