"""OpenAI's API as a front of the same calls: requests become calls of functions, and answers take OpenAI's forms.

A module parses a request, `model_calls` runs the call that it comes to, and a form (`chat_form`, `completion_form`, …)
writes what comes back. Nothing here decides about a call: limits, queues, money and cancellation are those of
`http/calls`.

Entered by the table of routes.
"""
