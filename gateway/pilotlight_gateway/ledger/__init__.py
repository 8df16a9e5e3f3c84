"""The ledger: usage events folded into SQL, their prices, and reports.

  ledger_entries      computes the rows of events
  ledger_store        writes each event once, into `ledger_tables`; `ledger_upgrade` runs the `migrations`
  usage_report        usage per day, and receipts of calls
  usage_conservation  checks that all time of a device is accounted for
  price_book          prices by id

Entered by `duties.ledger_folder`, `http.endpoints` and `calls.call_responses` (prices).
"""
