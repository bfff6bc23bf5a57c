"""The journal of a project in PostgreSQL, for several machines. Its contract is `Journal` in tenuto/ports.py."""
