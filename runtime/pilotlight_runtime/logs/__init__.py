"""What containers print.

`log_tap` reads the pipes, `log_lines` cuts and caps lines, `tenant_log_rates` bounds what a tenant may log, and
`log_shipper` sends lines to the LOGS stream. Everything is bounded, and no call waits for it.

Entered by `containers`, `metering` and `node`.
"""
