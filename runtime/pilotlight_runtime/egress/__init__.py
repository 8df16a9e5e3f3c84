"""The way out of sandboxes: a proxy in a process of its own, which the agent starts for containers with `network=`.

  client_hello        the server name that a TLS client asks for
  server_hello        whether its server wants to be asked again
  proxy_requests      what a client asks a proxy for
  connection_rules    whether a container may have it
  pinned_connections  the name resolved, its addresses vetted, and one of them connected to
  own_addresses       whether one is this host's own
  egress_proxy        serves the containers' sockets, within bounds
  proxy_process       the process around it; proxy_messages: what it and the agent tell each other
  proxy_supervisor    the agent's side: opens and closes ways, keeps the process alive
  function_counts     what functions have had through it

A container is known by the socket on which it speaks, never by what it says.
"""
