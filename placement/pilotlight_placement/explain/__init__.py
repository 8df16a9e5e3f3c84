"""Why containers are where they are, and what would fit.

`explanation` answers from a `decision_journal` and the `past_fleet`, `api_views` and `drawing` render it, `speeds`
says what is known of a function's speed, `floor_capacity` how much of a floor fits. Stands on `search`.
"""
