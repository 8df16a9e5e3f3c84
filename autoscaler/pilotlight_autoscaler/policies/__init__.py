"""The rules of a pass, each of which answers one question from values.

How many containers a version should have (`scaling_policy`), how many its tenant may have (`tenant_rooms`), who gives
way (`preemption`), for whom devices are kept (`version_reservation`), when a failed start is tried again
(`start_backoff`), how many moves an hour has (`move_budget`), and what ends (`version_shutdown`). Imports no other room
of the controller, and so anybody may enter.
"""
