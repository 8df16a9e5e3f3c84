"""Commands for GPUs, from the controller to their agent.

An agent answers a command at once and then executes it; the next report shows the result. Meanwhile
`DeviceReport.changing` is set and further commands for the device are refused as `changing`; `refused` says why the
last one failed. A command whose result exists already is answered with ok, so it can be repeated.
"""

from __future__ import annotations

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.message import Message


class Cut(Message, frozen=True, kw_only=True):
    """Destroy idle MIG instances of a GPU in MIG mode, then create others.

    Refused as a whole if an instance to destroy is in use (`slice_taken`), if there is no such GPU (`no_such_device`),
    if it is not in MIG mode (`not_mig`), or if the remaining and the new instances do not fit together (`illegal`).
    """

    epoch: int
    device: str
    destroy: tuple[MigPlacement, ...] = ()
    create: tuple[MigPlacement, ...] = ()


class SwitchMig(Message, frozen=True, kw_only=True):
    """Switch the MIG mode of an unused GPU; idle instances are destroyed.

    Refused on architectures that need a reset for it (`needs_reset`), and while the GPU is in use (`slice_taken`).
    """

    epoch: int
    device: str
    on: bool


DeviceCommand = Cut | SwitchMig
