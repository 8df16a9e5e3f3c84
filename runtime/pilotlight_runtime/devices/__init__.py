"""What a node has that functions can run on.

`device_port` is the port to the devices of one kind, `cpu_slots` a node's processors, `several_devices` all devices of
a node as one; `nvidia/` has GPUs, `fake/` GPUs that exist in software only.

Entered by `node`, `containers` and `metering` through `device_port`.
"""
