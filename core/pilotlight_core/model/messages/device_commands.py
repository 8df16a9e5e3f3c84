"""Commands for GPUs, from the controller to the agent that has them.

An agent answers a command at once and then acts; the next report shows what became of it. `DeviceReport.changing` says
that something is under way (a further command for the device is refused as `changing`), `refused` why the last one
failed. A command that asks for what is there already does nothing and is answered with ok, so repeating is harmless.
"""

from __future__ import annotations

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.agent_messages import Message


class Cut(Message, frozen=True, kw_only=True):
    """Destroy idle MIG instances of a GPU in MIG mode, then create others.

    Refused as a whole when an instance to be destroyed has a container or a process (`slice_taken`), when there is no
    such GPU (`no_such_device`) or it is not in MIG mode (`not_mig`), or when what remains and what is to be created do
    not fit together (`illegal`). To take idle instances away, name them in `destroy` and create nothing.
    """

    epoch: int
    device: str
    destroy: tuple[MigPlacement, ...] = ()
    create: tuple[MigPlacement, ...] = ()


class SwitchMig(Message, frozen=True, kw_only=True):
    """Switch the MIG mode of a GPU that nobody uses.

    Refused (`needs_reset`) on architectures that would have to be reset for it, and (`slice_taken`) while anybody is
    on it. Idle instances go with the mode.
    """

    epoch: int
    device: str
    on: bool


DeviceCommand = Cut | SwitchMig
