"""Reports of what the ledger has: for people, for spreadsheets, and for the billing systems of others.

  usage_forecast  a month's cost at its end, and how far such forecasts were off
  fleet_costs     who spends most, what nobody pays for, what each device earned
  invoices        a tenant's month
  focus_export    FOCUS 1.2, as cost tools of companies read it
  meter_events    CloudEvents for metering systems
  usage_parquet   the lines as Parquet
  usage_page      one HTML page with `svg_charts`

All are plain functions over the sums of `ledger.usage_queries`. Entered by `http.endpoints.billing`.
"""
