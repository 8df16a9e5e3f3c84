"""What the controller has observed of nodes, demand and its own commands.

`world` holds it, `curve_learning` learns throughput from calls in use. Pure: time is an argument. Entered by `passes`
and the controller.
"""
