"""Money: usage in its forms, invoices, budgets and credits."""
