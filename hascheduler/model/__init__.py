"""The nouns that cross rooms: frozen values, no behaviour beyond their own meaning.

``instants`` and ``durations`` are how time is written; ``job`` holds the life of a job as one table;
``documents`` says how each noun is stored. Nothing here knows a driver, a clock or an event loop.
"""
