"""Many machines: one journal in PostgreSQL, attempts on any of them."""
