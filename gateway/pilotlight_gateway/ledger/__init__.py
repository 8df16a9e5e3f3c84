"""The ledger: usage events folded into SQL, their prices, and reports.

  ledger_entries      computes the rows of events
  ledger_store        writes each event once; `ledger_tables` is its schema, `ledger_upgrade` runs `migrations`
  usage_report        usage per day, and receipts of calls
  usage_conservation  checks that all time of a device is accounted for
  price_book          prices by id, from `prices.toml`

Entered by `duties.ledger_folder`, `http.endpoints` and `calls.call_responses` (prices).
"""
