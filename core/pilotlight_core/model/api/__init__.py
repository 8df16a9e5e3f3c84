"""The requests and responses of the HTTP API as structs, by subject, for the gateway and the SDK. Imports `model`."""
