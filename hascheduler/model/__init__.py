"""The nouns that cross rooms: frozen values, no behaviour beyond their own meaning.

::

    documents/         the stored form of each noun
    one file a noun    job: the life of a job as one table; schema_version: how two releases share a database; …
    values/            instants, durations, single fields of documents, texts of errors

Nothing here knows a driver, a clock or an event loop.
"""
