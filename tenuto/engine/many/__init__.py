"""Many runs of one repository: each in a tree of its own, from a queue, within what all of them may spend."""
