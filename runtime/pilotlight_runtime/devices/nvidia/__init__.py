"""GPUs of NVIDIA, through the driver's management library.

`nvml_devices` is the entry, `nvml_port` the library. `gpu_survey` finds GPUs at start; `gpu_health`, `xids` and `gpm`
read them; `gpu_state` says what follows; `gpu_layouts` and `mig` cut them; `mps` shares them. `driver_mounts` and
`driver_libraries` are what a sandbox must see of the host; `gpu_fitness` and `gpu_check` test GPUs.

Entered by `node` and the composition root.
"""
