"""Files of requests and of answers: uploads, and batches as OpenAI's clients submit them.

Entered by the table of routes.
"""
