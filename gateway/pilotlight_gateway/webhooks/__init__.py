"""Webhooks: signed HTTP messages to tenants about their ended jobs.

  webhook_service  creates and changes webhooks
  event_feed       turns ended jobs into deliveries (`job_events`, `webhook_events`)
  delivery_sender  sends deliveries as `delivery_schedule` and `delivery_attempts` decide
  http_sender      posts to vetted addresses (`core.host.outbound`)
  webhook_urls     refuses URLs that could never be sent to
  webhook_signing  signs
  webhook_port     the port of the records; `bus_webhooks` is the real one

Entered by `http.endpoints` and `duties.webhook_duty`.
"""
