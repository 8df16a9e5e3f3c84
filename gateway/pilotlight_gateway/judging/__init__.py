"""The judge of rollouts: what it has seen of both sides, and what follows from it. Plain functions over values.

`evidence.py` folds compared calls into evidence, `verdicts.py` says what the evidence says, `decisions.py` moves a
rollout on. Time is an argument, and the driver is `duties/`.
"""
