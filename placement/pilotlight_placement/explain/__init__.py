"""Explanations: why containers are where they are, and what would fit.

`explanation` answers from a `decision_journal` and the `past_fleet`; `api_views` and `drawing` render it; `speeds`
describes a function's known speed, `floor_capacity` how much of a floor fits. Imports `search` and the rooms below it.
"""
