"""What whoever watches the platform asks: who changed what, and how busy gateways are."""
