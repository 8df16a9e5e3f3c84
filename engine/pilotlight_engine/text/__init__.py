"""Text around an engine, which knows token ids only.

`tokenizers` reads tokenizer.json of the weights, `chat_template` makes a prompt of messages, `detokenizer` text of
tokens as they come, `stop_strings` finds where it ends, `tool_calls` what of it is a call; `answer_text` puts the last
three in a row. All of it is a function of the tokens alone: what goes on elsewhere says the same again. Weights,
templates and messages are a tenant's, and run in the tenant's sandbox.
"""
