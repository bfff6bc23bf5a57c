"""`tenuto mcp`: a run, asked about and led over the Model Context Protocol.

    tools       what a model may ask for: names, descriptions, the shapes of questions and answers
    calls       one function per tool: they ask the engine, the dialects and the read model; no rule of their own
    resources   the artifacts of runs, to be read
    server      the official SDK, which nothing else imports

What agents and people stored is handed over as data: in fields, never as words to the model.
"""
