"""Erasing a tenant: its keys are destroyed, then everything else of it goes, but its ledger lines and the audit log."""
