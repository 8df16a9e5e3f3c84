"""What the decorators say to those who know peers: names of theirs, and what they are called here. Imports nothing."""
