"""How many GPUs of which type a demand needs: `pilotlight plan`.

`planner_command` is the command, `demand_csv` reads its files, `capacity_plan` is the problem, solved by
`greedy_planner` (with `greedy_offers`) or `ilp_planner`, on `mig_layouts`. Stands on `hardware` and `asks`; nothing
online uses it.
"""
