"""Agents: one program each, and what their words mean."""
