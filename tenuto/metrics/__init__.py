"""Figures over what happened: durations, estimates, savings, retries, cost, critical path, and what is usual here.

Folds over runs. Nothing here is stored, and no rule asks for it.
"""
