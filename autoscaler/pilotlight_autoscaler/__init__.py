"""The controller: from demand to desired containers to commands for agents.

`controller` is the process. It tells `observations/` what it hears, has `passes/` decide on it by the rules of
`policy/`, and sends what `plans/` makes of the decision; `bindings/` knows what is bound where.
"""
