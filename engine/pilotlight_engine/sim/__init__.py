"""An engine without torch: the same scheduler, tokens by arithmetic, and a step's time by arithmetic too.

`sim_engine` is for tests of whatever uses engines, and for simulations; `step_costs` says how long a step takes.
Imports `scheduling` and `engine_port`.
"""
