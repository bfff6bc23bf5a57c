"""How a definition becomes a checked pipeline. `tenuto.core.pipeline.check` is the door; these are its rooms.

values   read one value, note what is wrong with it
paths    documents and files: inside, and do two of them meet?
seats    agents' places: shorthand, defaults
steps    the five kinds of step
reviews  shorthand that stands for routes
routes   what follows an outcome
graph    what only the whole shows: unknown ids, dead ends, shared outputs
"""
