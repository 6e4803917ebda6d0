"""Single values: how they are written, read, shown and kept. The nouns stand on them.

::

    instants, durations    integer milliseconds, and the texts that people write for them
    fields                 reads single fields of stored documents
    frozen                 dataclasses of which a process has many
    error_texts            what an error message says of a value or a name that was given
    redaction              texts without the secrets in them
    strict_yaml            YAML in which no key stands twice
"""
