"""Schedules of deployed functions: plain functions over the registry's records and the instant.

  scheduled_methods  what runs by itself of an app, and which version of it at an instant
  tick_plan          the ticks whose jobs have to stand at an instant
  tick_jobs          the job of a tick, and what becomes of it when the app is changed

Entered by the duty that stores the jobs, by the jobs that ask before they begin, and by what shows schedules.
"""
