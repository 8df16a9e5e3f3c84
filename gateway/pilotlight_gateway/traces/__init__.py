"""Traces: what a gateway keeps of calls that failed, were slow or were sampled, and what is told of one of them.

`trace_keeper.py` judges each call as it ends, and keeps what is to be kept; `trace_exchange.py` sends that to the
duties and answers other gateways; `access_log.py` has the lines of the log. What a kept call says is worked out by
plain functions: `span_tree.py` for collectors, `call_sentences.py` and `explained_calls.py` for people. Entered by
HTTP, by the wiring and by the duties.
"""
