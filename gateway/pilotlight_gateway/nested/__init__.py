"""Calls that functions make, in the name of whoever called them.

  nested_exchange  hears agents, answers them, and ends what nobody waits for any more
  nested_calls     carries one nested call out, as calls over HTTP are
  nested_requests  gives arguments by place their names
  nested_book      which nested calls have not ended, below which call from outside
  nested_rules     who may ask, how deep and how many, and which function may not be called
  nested_waits     which nested calls wait for what their own callers hold

The origin of a call is the origin of the calls that it makes: what an agent may ask for is checked against grants that
this gateway sent, and a nested call never outlives its parent's gateway.
"""
