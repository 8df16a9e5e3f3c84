"""What was used and what it costs: usage events folded into SQL, and the reports over it.

`entries` says what an event adds, `ledger_store` writes it once, `usage_report` and `conservation` read it, `tables`
is the schema, `prices` the price book.

Entered by `duties/ledger_folder`, `http/endpoints` and `calls/call_responses` (prices).
"""
