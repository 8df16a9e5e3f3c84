"""Plans of placement on their way to agents.

`plan_commands` makes commands for agents of a plan, `plan_execution` holds those that wait for others. Pure: time is
an argument. Entered by `observations`, `passes` and the controller.
"""
