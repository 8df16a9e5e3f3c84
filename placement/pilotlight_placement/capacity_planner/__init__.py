"""The number of GPUs of each type for a demand: `pilotlight plan`.

`planner_command` is the command, `demand_csv` reads its files. `capacity_plan` is the problem, solved by
`greedy_planner` (with `greedy_offers`) or `ilp_planner`, on `mig_layouts`. Imports `hardware` and `asks`; no server
process uses it.
"""
