"""The drivers of a run: each asks todo() what is to be done, does it, and reports what came of it."""
