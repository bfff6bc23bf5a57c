"""The read model: what a run is, what it waits for, what came of its attempts. Data out; rendering is done elsewhere.

    runs        which runs there are, which one is meant, their history and artifacts
    views       run_view and attempt_view: a run and its attempts as flat records
    waiting     waiting_view: what a run waits for, and what would follow each possible answer
    measures    measured: how long, how often, how much, and how each figure was measured
    sentences   sentence: an event as a sentence; progress_line: the same for a person who watches
    picture     a run at one moment, as lines
    amounts     figures as people read them

The command line, the MCP server and a page use these modules to look at a run, and nothing else.
"""
