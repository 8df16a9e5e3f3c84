"""What a node has that functions can run on.

`device_port` is what the agent asks of devices, `cpu_slots` are a node's processors, `several_devices` makes all
devices of a node one; `nvidia/` has GPUs, `fake/` GPUs that exist in software only.

Entered by `node`, `containers` and `metering` through `device_port`.
"""
