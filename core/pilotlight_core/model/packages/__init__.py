"""What functions run with beside their base environment: what tenants ask for, and what was locked."""
