"""How a definition becomes a checked pipeline. `tenuto.core.pipeline.check.check` is the door; these are its rooms.

records  what a checked pipeline is, and how it is understood
values   one value, path or document: read, and what is wrong with it
steps    the five kinds of step, and the agents' seats in them
routes   what follows an outcome; shorthand that stands for routes
check    what only the whole shows: unknown ids, dead ends, shared outputs
"""
