"""What all requests to a platform share: configuration, connection, retries, wire format, errors."""
