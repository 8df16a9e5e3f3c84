"""Where one container goes: filter, score, choose, and say why not.

`policy` lists the filters and the steps in the order in which they are tried, `search` finds the best place by the
fleet's indexes, `place` is the entry, `decision_record` what a decision was. `refusal`, `feasibility` and `obstacles`
say why there is none. Stands on `fleet`.
"""
