"""NVIDIA's Multi-Process Service: shares of one GPU run at once, each within its memory and its processors.

The operator runs its control daemon (`nvidia-cuda-mps-control`) and configures the agent with the folder of its pipes.
Two variables bound a share, which CUDA reads in the client's own process: a malicious program could unset them, and a
fault of one client may end the others. So shares are one tenant's, or of versions that agree to neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.node_messages import SliceReport
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.sandbox.sandbox_spec import Mount

MIB = 2**20
PID_FILE = "nvidia-cuda-mps-control.pid"
"""The daemon's, in the folder of its pipes."""


@dataclass(frozen=True, kw_only=True)
class Mps:
    """`pipes` is the folder of the daemon's pipes."""

    pipes: Path

    def bounded(self, access: DeviceAccess, share: SliceReport) -> DeviceAccess:
        """The access to a GPU, within a share of it."""
        mount = Mount(source=self.pipes, target=self.pipes)
        return replace(access, read_only=(*access.read_only, mount), env={**access.env, **self.limits(share)})

    def limits(self, share: SliceReport) -> Mapping[str, str]:
        """CUDA's variables. The device number counts among the container's visible devices: it is 0."""
        percent = max(1, share.ppm * 100 // WHOLE_DEVICE)
        return {
            "CUDA_MPS_PIPE_DIRECTORY": str(self.pipes),
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={share.memory // MIB}M",
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percent),
        }


def open_mps(folder: str) -> Mps | None:
    """The daemon whose pipes are in a folder; None for "".

    Raises:
        BadInput: if no daemon runs there: then nothing would be bounded.
    """
    if not folder:
        return None
    pipes = Path(folder).resolve()
    try:
        pid = int((pipes / PID_FILE).read_text())
        is_there = Path(f"/proc/{pid}").exists()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        why = f"no MPS control daemon is at work in {pipes}: start it with CUDA_MPS_PIPE_DIRECTORY={pipes}"
        raise BadInput(f"{why} nvidia-cuda-mps-control -d.", field="mps_pipes")
    return Mps(pipes=pipes)
