"""What engines tell of themselves, as far as the number of containers goes by it.

`token_pressure` says whether they hold the pace of tokens that their version asks for. Plain functions over values.
Imported by the rules of `policy` and by passes; it imports nothing of theirs.
"""
