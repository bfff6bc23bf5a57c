"""Requests that wait for their turn: the queue, the calendar of schedules, and what a day may cost. Pure."""
