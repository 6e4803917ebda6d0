"""The collections and indexes that this release needs, and the version of the documents in the database."""
