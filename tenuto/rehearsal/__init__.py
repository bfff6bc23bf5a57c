"""Pipelines tried out without agents: cases in a file beside the pipeline, each run in a repository of its own."""
