"""What containers print.

`log_tap` reads the pipes, `log_lines` cuts and caps lines, `log_shipper` sends them to the LOGS stream. Everything is
bounded, and no call waits for it.

Entered by `containers`, `metering` and `node`.
"""
