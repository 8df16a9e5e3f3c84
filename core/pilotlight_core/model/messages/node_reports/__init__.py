"""What is told from the reports of nodes, by plain functions: which are new in something, and which cannot be true.

Who imports messages may enter; it enters those.
"""
