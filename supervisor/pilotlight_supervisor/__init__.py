"""The whole platform on one machine: `pilotlight up`.

`platform_plan` says which processes there are, `supervisor` starts them and starts again what dies, `embedded_bus`
runs a nats-server, `readiness` waits until calls are taken, `lease_cleanup` gives up the leases of a process that
died, `up` is the command. The top floor: it names every other package, and none names it.
"""
