"""Webhooks: tenants are told when their jobs end.

`endpoints` manages what tenants registered, `addresses` vets where they point, `event_feed` turns ended jobs into
`events`, `delivery_schedule` says what is sent when, `delivery_sender` sends through `http_sender`
(`http_sender_fake` in tests), signed by `signing`. `bus_webhooks` stores records behind `webhook_port`.

Entered by `http/endpoints` and `duties/webhook_duty`.
"""
