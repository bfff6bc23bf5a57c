"""The command line for people and scripts: one module per command, each loaded when it is called."""
