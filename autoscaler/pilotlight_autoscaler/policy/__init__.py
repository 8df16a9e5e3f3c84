"""The rules of a pass, each of which answers one question from values, so that a simulation decides as the controller.

How many containers a version should have (`scaling_policy`), how fast idle ones go (`scale_down_pace`), how many its
tenant may have (`tenant_rooms`), who gives way (`preemption`), for whom devices are kept (`version_reservation`), when
a failed start is tried again (`start_backoff`), how many moves an hour has (`move_budget`), what ends
(`version_shutdown`), and when an idle function is worth a container (`idle_times`, `keep_alive`). Imports no other room
of the controller, and so anybody may enter.
"""
