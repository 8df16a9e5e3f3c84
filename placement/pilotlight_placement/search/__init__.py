"""Where one container goes: filter, choose, count, and say why not.

`place` is the entry. `policy` lists filters and steps; `selection` chooses through `tiers`, `node_search` and
`index_search` among `candidate`s; `filter_counts` (with `open_units`) counts what filters rule out; `refusal`,
`feasibility` and `diagnostics` say why there is no place; `decision_record` is the decision. Stands on `fleet`.
"""
