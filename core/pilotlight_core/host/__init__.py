"""What server processes share: the bus, the embedded nats-server, registry, blobs, configuration, telemetry."""
