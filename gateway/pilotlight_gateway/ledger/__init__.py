"""What was used and what it costs: usage events folded into SQL, and the reports over it.

`ledger_entries` says what an event adds, `ledger_store` writes it once, `usage_report` and `usage_conservation` read
it, `ledger_tables` is the schema, `ledger_upgrade` its revisions, `price_book` the prices.

Entered by `duties.ledger_folder`, `http.endpoints` and `calls.call_responses` (prices).
"""
