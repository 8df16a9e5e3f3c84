"""The origin side of live calls: a gateway holds the callers of its calls here, from the request to the answer.

`origin` is the state machine of one call. It returns `effects`, which `effect_runner` carries out; `in_flight` holds
the call and its caller, `call_book` all of them. `call_service` runs them and receives what homes and agents send.
`call_port` is what HTTP endpoints and jobs use, with `call_fake` beside it; `call_requests` and `call_responses` turn
bytes into arguments and results into bytes. `large_bodies` serves agents what is too large for the bus, `reconciler`
asks agents about silent calls, `remote_lookup` asks the gateway that owns a call.

Entered by `http/endpoints`, `jobs` and the composition root, through `call_port`. Never imports `home`.
"""
