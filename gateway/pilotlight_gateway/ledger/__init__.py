"""The ledger: usage events folded into SQL, and reports.

  attribution         who pays for an interval
  ledger_entries      computes the rows of events
  ledger_corrections  gives back what was billed before it was known whose it is
  ledger_store        writes each event once, into `ledger_tables`; `ledger_upgrade` runs the `migrations`
  usage_report        usage per day, and receipts of calls
  ledger_verification recomputes all sums; `ledger_command` in the root is that as a program
  usage_conservation  checks that all time of a device is accounted for

Entered by `duties.ledger_folder` and `http.endpoints`. Prices are in `pilotlight_core.model.price_book`.
"""
