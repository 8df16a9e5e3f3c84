"""Idempotency keys: a repeated request gets the first one's answer and does not run again.

  key_header       reads the request's headers
  key_record       the record of a key
  key_decision     decides about a request, given the record
  keyed_calls      runs the first request and answers the others
  key_record_port  the port of the records; `bus_key_records` is the real one

Entered by `http.endpoints` and the composition root.
"""
