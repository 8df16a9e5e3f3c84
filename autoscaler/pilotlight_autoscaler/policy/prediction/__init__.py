"""What a function will need soon, learnt from the minutes in which it needed containers.

`minute_methods` are the ways to say it, `forecast` and `keep_alive` (by `idle_times`) among them; `shadow_pool` charges
each with what it would have cost and chooses; `prewarm_budget` bounds what is wasted on errors.
"""
