"""Webhooks: tenants hear when their jobs end.

`webhook_service` manages what tenants registered, `address_policy` vets where they point, `event_feed` turns ended jobs
into `webhook_events`, `delivery_schedule` orders deliveries, `delivery_sender` sends them through `http_sender`
(`http_sender_fake` in tests), `webhook_signing` signs them. `bus_webhooks` stores records behind `webhook_port`.

Entered by `http.endpoints` and `duties.webhook_duty`.
"""
