"""What the HTTP API and the SDK exchange: requests and answers as structs, by subject.

Stands on `model`; entered by the gateway and the SDK.
"""
