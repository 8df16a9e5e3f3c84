"""Parts that server processes share: registry, blobs, manifest signatures, settings, logs and metrics."""
