"""Usage in integer nanoseconds: what each slice was doing, and for whom.

`meter` is the arithmetic of one slice, a `metered_slice`; `device_meter` has those of a whole device, `several_meters`
those of a container on several. `slices` maps slices to containers, `container_meter` meters one container and keeps
how long batches took, `usage_metering` checkpoints the meters, writes `usage_log` to disk and sends it. `ended_shares`
keeps what ended calls used until then, and `usage_recovery` makes records of what a killed agent left there.

Entered by `containers`, `calls` and `node`.
"""
