"""What goes in and never comes out: the secrets of a tenant."""
