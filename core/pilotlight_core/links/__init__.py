"""Links: connections between two processes without the bus between, for the messages of calls.

`link` has one end of a link: frames, groups, and what the other end has not confirmed. `unix_links` opens links over
Unix sockets in a folder that is private to the platform's user. A link promises what the bus does, and the bus stays
the way for all who have none. Used by gateways (`cluster`) and agents (`node`, `calls`); imports `model` alone.
"""

from pilotlight_core.links.link import TO_AGENT, TO_GATEWAY, TO_PEER, Link, LinkOwner, LinkPort
from pilotlight_core.links.unix_links import LinkFolder, UnixLink, name_of

__all__ = ["TO_AGENT", "TO_GATEWAY", "TO_PEER", "Link", "LinkFolder", "LinkOwner", "LinkPort", "UnixLink", "name_of"]
