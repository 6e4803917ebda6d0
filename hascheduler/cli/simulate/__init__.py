"""``hascheduler simulate`` and ``record``: what would happen, without a server, and what a leader decided.

::

    command    simulate: the command                    record   record: a leader's inputs and decisions → a file
    input      files, examples, policies → scenarios    replay   a recording, decided again
    tables     reports → tables                         output   pictures and the progress bar
"""
