"""Whoever turns the crank: each driver asks todo() what is to be done, does it, and reports what came of it."""
