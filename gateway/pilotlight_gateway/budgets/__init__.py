"""What tenants may spend: hard and soft budgets, held while the money is spent.

`budget_settings` sets and lists them. The home of a tenant's limits has a `purse` for each of its budgets, in
`budget_home`; it spends no more than the tranche that `tranche_keeper` has taken from the durable record before.
`call_prices` says what a call may cost at worst, and what it did cost.

`limits` stands on this room, which knows nothing of it.
"""
