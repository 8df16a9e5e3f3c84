"""Serves an engine as a function: what containers of `engine=` functions run in the place of a tenant's code.

`engine_function` has the methods that calls name. `engine_opening` finds weights and makes the engine, `step_thread`
steps it, `token_inbox` has what came for one call. `generation_reader` reads a call's document, `answer` makes chunks
of tokens, and `answer_state` is what another container needs to go on.
"""
