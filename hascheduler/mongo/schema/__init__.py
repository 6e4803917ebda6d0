"""The collections and indexes that this release needs, and the version of the documents in the database.

``indexes`` lists the indexes and creates what is missing: every replica does that at its start. ``migrate`` is the
operator's command: it does the same step by step, reports progress, and then raises the schema version.
"""
