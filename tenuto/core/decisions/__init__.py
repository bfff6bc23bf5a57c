"""Deciders by family: each takes a Case and a command and returns events, or refuses."""
