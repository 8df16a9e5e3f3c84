"""What is counted of calls by function: bounded sketches of the last hour and day, which gateways add up.

`Tallies` is told of each call by the recorder, keeps the counts of each function and version by the minute, and seals
what is over into few bytes. `TallyDesk` asks all gateways for a window and adds up what they tell: one source for the
statistics of tenants, their metrics, the diagnosis, the dashboard and whoever judges a rollout.

Entered by `metrics`, `http` and the composition root.
"""
