"""Several gateways as one: which gateway is the home of which shard, and how gateways reach each other.

`router` is the one door between homes and origins, here or elsewhere.
`driver_port` is what every driver stands on. `shards` holds this gateway's lease and takes shards as `shard_plan`
decides; `shard_table` is what is known of them, and `shard_ownership` what others ask of it. `identity_guard` refuses
a second process under a living gateway's name, `remote_lookup` asks the gateway that has a call. `node_watch` tells
the drivers what nodes say, `node_incarnations` which agent of a node is the present one.

Entered by the composition root, `calls`, `home`, `jobs` and `limits`; it knows none of them.
"""
