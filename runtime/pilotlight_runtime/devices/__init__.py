"""What a node has that functions can run on.

    port          what the agent asks of devices
    cpu           CPU slots
    nvml          whole GPUs, as the driver's management library shows them
    several       all of a node's devices as one

Below `nvml`: `nvml_port` and `fake_nvml` (the library and its double), `bounded` (a thread that may hang), `survey` and
`health` (what is read, and what it means), `product` (names and prices), `driver` and `libraries` (what a sandbox must
see of the host), `gpu_check` (lines for the node check). Import from the noun.
"""
