"""The whole platform on one machine: `pilotlight up`.

`platform_plan` lists the processes, `supervisor` starts and restarts them, `embedded_bus` runs a nats-server,
`readiness` waits until calls are accepted, `up` is the command. It may import every other package; none imports it.
"""
