"""The context manager: its thirteen commands, and what the engine needs of it. Its files are in tenuto/views/context/.

language    text -> requests; records -> printed blocks; refusals in the seed's words
commands    the commands as a library, and a request as a call of it
tasks       INIT, LIST; which task is meant; folders that others wrote
phases      START_PHASE, END_PHASE, PAUSE, SET_GATE, RESUME
storing     STORE: artifacts, audits, the life of a POC     debt       its document
retrieving  RETRIEVE, QUERY                                 memory     project memory
reports     METRICS, SUMMARY, HISTORY                       answers    the records that commands return
dialect     what the engine and `tenuto adopt` ask of it
"""
