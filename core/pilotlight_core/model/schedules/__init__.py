"""When functions run by themselves: `ticks` computes the instants, `schedule_checks` refuses what is no schedule.

Whoever needs it imports it late: it loads time zones and a library for cron expressions. It enters the plain values
alone.
"""
