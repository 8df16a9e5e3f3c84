"""Who has which model's name."""

from __future__ import annotations

import msgspec


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A name that a deploy has claimed for a function of the tenant. Key: `model.{tenant}.{digest of the name}`.

    It names a function, never a version, and counts only while what is deployed of that function says that it is
    served under the name: so what a deploy that failed has left is in nobody's way.
    """

    tenant: str
    name: str
    app: str
    function: str
    created_at: float
    """When the function got the name, in unix seconds."""
    claimed_at: float
    """When a deploy last claimed it, in unix seconds."""

    @property
    def ref(self) -> str:
        """`app.function`."""
        return f"{self.app}.{self.function}"
