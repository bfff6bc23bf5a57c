"""One module per seed: its files and commands as a view of a run. They translate; every rule is in core/."""
