"""Several gateways as one: which gateway is the home of which shard, and how gateways reach each other.

`router` brings messages between homes and origins, here or elsewhere. `driver_port` is the port of every driver.
`shards` holds this gateway's lease and takes shards as `shard_plan` decides; `shard_table` knows the gateways and
homes, `shard_ownership` is its port. `gateway_addresses` knows where clients reach them. `identity_guard` refuses a
second process under a living gateway's name, `remote_lookup` asks the gateway that has a call. `node_watch` passes the
nodes' messages to the drivers, `node_incarnations` knows the present agent of each node. `agent_links` has the ways to
agents, over links or the bus; `link_dialer` opens links to those of this machine, `agent_ends` owns them from the first
greeting on. `peer_links` has the ways to other gateways.

Entered by the composition root, `calls`, `home`, `jobs` and `limits`; it imports none of them.
"""
