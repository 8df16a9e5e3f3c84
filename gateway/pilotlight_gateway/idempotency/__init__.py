"""Idempotency keys: a repeated request gets the first one's answer instead of running again.

`key_header` reads the request's headers, `key_decision` says what becomes of a request given the `key_record`,
`keyed_calls` reads and writes records and runs what has to run, `bus_key_records` stores them behind
`key_record_port` (`memory_key_records` in tests).

Entered by `http/endpoints` and the composition root.
"""
