"""Webhooks: signed HTTP messages to tenants about the ends of their jobs.

  webhook_service    creates and changes a tenant's webhooks
  event_feed         turns ended jobs into deliveries, with `job_events` and `webhook_events`
  delivery_sender    sends what `delivery_schedule` orders; `delivery_attempts` decides about retries
  http_sender        vets addresses (`address_policy`, `name_resolver`) and posts; `http_sender_fake` in tests
  webhook_signing    makes secrets and signatures
  webhook_port       the port of the records; `bus_webhooks` is the real one

Entered by `http.endpoints` and `duties.webhook_duty`.
"""
