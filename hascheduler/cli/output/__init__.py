"""What the user sees: answers as tables, pages or one JSON document on standard output, log lines on standard error.

::

    printable    text from outside without what a terminal would obey
    console      tables, JSON, ``--watch``
    instants     instants and spans in words
    yaml_text    documents as YAML, and their differences
    changes      what a command changed, field by field
    logs         log lines of ``serve``, ``processor`` and the commands of ``setup``
"""
