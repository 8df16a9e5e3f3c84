"""What all requests to a platform share: where it is, the connection, retries, the wire format and errors."""
