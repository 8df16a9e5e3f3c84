"""What containers print: `log_tap` reads the pipes, `log_lines` cuts and caps, `log_shipper` sends it to the LOGS
stream.

Entered by `containers`, `metering` and `node`. Bounded everywhere; never in a call's way.
"""
