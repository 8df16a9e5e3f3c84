"""Usage in integer nanoseconds: what each slice was doing, and for whom.

`meter` is the arithmetic, `slices` says which container is on which slice, `container_meter` meters one container
and keeps how long batches took, `usage_log` is on disk before the bus has an event, `usage_metering` checkpoints and
sends.

Entered by `containers`, `calls` and `node`.
"""
