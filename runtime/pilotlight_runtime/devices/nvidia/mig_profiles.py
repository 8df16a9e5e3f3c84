"""NVML's numbers of the profiles of MIG instances, and the keys of the catalogue ("1g", "1g.2x", "3g").

A profile is asked for by its *number*, the same on all GPUs; the answer has an *id*, which differs by family and
creates instances. Names differ by product and driver, so they decide nothing.
"""

from __future__ import annotations

import pynvml

KEYS: dict[int, str] = {
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE: "1g",
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1: "1g.me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2: "1g.2x",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE: "2g",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1: "2g.me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_3_SLICE: "3g",
    pynvml.NVML_GPU_INSTANCE_PROFILE_4_SLICE: "4g",
    pynvml.NVML_GPU_INSTANCE_PROFILE_7_SLICE: "7g",
}
"""Profile number -> key. Profiles with or without graphics or all media engines are not offered."""
NUMBERS = {key: number for number, key in KEYS.items()}
COMPUTE: dict[int, int] = {
    1: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE,
    2: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE,
    3: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE,
    4: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE,
    7: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE,
}
"""Compute slices -> the number of the compute instance's profile that has all of them."""
