"""Money: usage in its forms, and invoices."""
