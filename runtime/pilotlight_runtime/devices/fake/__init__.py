"""GPUs made of fields, for tests and for machines without one; reports show it by the name of their driver.

`fake_machine` reads `--fake-gpus`; `fake_nvml` and `fake_mig` refuse what the real library refuses; `fake_gpu` is the
state.
"""
