"""The pure core: what may happen, what it changes, what should be under way."""
