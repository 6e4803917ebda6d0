"""The nouns that cross rooms: frozen values, no behaviour beyond their own meaning.

One file a noun: ``job`` holds the life of a job as one table, ``instants`` and ``durations`` how time is written,
``schema_version`` how two releases share a database. ``documents/`` has the stored form of each noun and stands above
the nouns; ``fields`` reads single fields of documents and stands below them.
Nothing here knows a driver, a clock or an event loop.
"""
