"""Files that others may touch: opened without following links, replaced without losing anybody's write."""
