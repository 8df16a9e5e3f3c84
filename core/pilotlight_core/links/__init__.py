"""Links: connections between two processes without the bus between, for the messages of calls.

`link` has one end of a link: frames, groups, and what the other end has not confirmed. `accepted_ends` keeps the ends
that others have dialled. `unix_links` opens links over Unix sockets in a folder that is private to the platform's user,
`host_links` those that gateways of other hosts offer; what is said before one is in `link_requests`. A link promises
what the bus does, and the bus stays the way for all who have none. Used by gateways (`cluster`) and agents (`node`,
`calls`); imports `model` alone.
"""

from pilotlight_core.links.accepted_ends import AcceptedEnds
from pilotlight_core.links.host_links import LinkCaller
from pilotlight_core.links.link import TO_AGENT, TO_GATEWAY, TO_PEER, Link, LinkOwner, LinkPort
from pilotlight_core.links.unix_links import LinkFolder, name_of, unix_link

__all__ = [
    "TO_AGENT",
    "TO_GATEWAY",
    "TO_PEER",
    "AcceptedEnds",
    "Link",
    "LinkCaller",
    "LinkFolder",
    "LinkOwner",
    "LinkPort",
    "name_of",
    "unix_link",
]
