"""The stored form of each noun, and its decoding: one file a noun, with both directions in it.

So the schema has one owner. Each codec also names the fields that a mirror needs (``…_FIELDS``), which `lean_fields`
gathers by collection; the stream and the snapshot project to them, so payloads never travel to a mirror. Any document
may have been written by hand: a decoder raises `InvalidInput` with the path of the wrong field, for the quarantine. It
first requires that this release knows the document's form (`hascheduler.model.schema_version`).

``fired_job`` is not a codec: it makes the job that follows from a stored schedule at a nominal time.

Instants are integers (``…_ms``), except ``expire_at``, which MongoDB's TTL monitor must read.
"""
