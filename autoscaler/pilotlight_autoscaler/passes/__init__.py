"""One pass over all versions: from the `World` to commands.

`decide` is the pass, from a `pass_input` to a `decision`; it hands `pass_state` from step to step:
`needless_containers`, `missing_containers`, `preemption_round`, `moving_plan`, `pass_reservations`,
`shortage_reports`. `version_views` and `version_speed` show it the versions; `quarantine` finds those on which it
fails. Pure: time is an argument. Entered by the controller.
"""
