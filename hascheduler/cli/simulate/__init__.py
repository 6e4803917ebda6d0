"""``hascheduler simulate`` and ``record``: what would happen, without a server, and what a leader decided.

::

    command    simulate: a scenario is run, a recording is decided again
    record     record: a leader's inputs and decisions → a file
    input      files, examples, policies → scenarios
    tables     reports → tables                 output   pictures and the progress bar
"""
