"""How people are told that a run wants something of them, or has ended."""
