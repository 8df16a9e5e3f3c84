"""Placement of one container: filter, choose, count, and explain a refusal.

`place` is the entry. `filters` lists what excludes a device (`unit_words` puts devices in words), `policy` the steps
that decide between places. `selection` chooses among `candidate`s through `tiers`, `node_search` and `index_search`;
`filter_counts` (with `open_units`) counts what filters exclude; `refusal`, `feasibility` and `diagnostics` say why
there is no place; `decision_record` is the result. Imports `fleet` and the
rooms below it.
"""
