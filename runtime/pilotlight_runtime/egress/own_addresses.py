"""Whether an address is this host's own: behind it may stand what trusts its neighbours.

The kernel is asked for the way there (rtnetlink): its answer also knows the second addresses of a network, which
getsockname(2) of a connected socket does not name.
"""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv4Address

from pilotlight_core.host.outbound.address_policy import Address

RTM_NEWROUTE, RTM_GETROUTE = 24, 26
NLM_F_REQUEST = 1
NLMSG_ERROR = 2
RTA_DST = 1
RTN_UNICAST = 1
_HEAD = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
_ROUTE = struct.Struct("=8BI")
"""rtmsg: family, bits of the destination and of the source, tos, table, protocol, scope, type; flags."""
_ATTRIBUTE = struct.Struct("=HH")


def is_own_address(address: Address) -> bool:
    """Whether this host itself would be reached, or all of its network; raises OSError: it cannot be told."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    body = _ROUTE.pack(family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    body += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(address.packed), RTA_DST) + address.packed
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asking:
        asking.setblocking(False)  # noqa: FBT003 - its only argument
        asking.send(_HEAD.pack(_HEAD.size + len(body), RTM_GETROUTE, NLM_F_REQUEST, 1, 0) + body)
        answer = asking.recv(4096)  # the kernel has answered by the time that it has taken the question
    return _is_own(answer)


def _is_own(answer: bytes) -> bool:
    kind = _HEAD.unpack_from(answer)[1]
    if kind == NLMSG_ERROR:
        return False  # there is no way there
    if kind != RTM_NEWROUTE:
        raise OSError("the kernel does not say which way an address is")
    return bool(_ROUTE.unpack_from(answer, _HEAD.size)[7] != RTN_UNICAST)
