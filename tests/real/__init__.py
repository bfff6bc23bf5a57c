"""Real agent programs against a scripted model on this machine."""
