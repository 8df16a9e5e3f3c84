"""Explanations: why containers are where they are, and what would fit.

`explanation` answers from a `decision_journal`, on the fleet as it was then; `api_views` and `drawing` render it.
`speeds` describes a function's known speed, `floor_capacity` how much of a floor fits. Imports `search` and the rooms
below it.
"""
