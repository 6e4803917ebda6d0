"""The live documents of MongoDB, as lean references, folded from one ordered stream.

::

    snapshot, stream, fetches ──► Change ──► Mirror.fold ──► Folded: facts, in order ──► dispatch core, elector, views
                                                                     events, marks, documents to read

The newest ``rev`` wins, so a snapshot and the stream may overlap in any way; deletes are remembered by the order of
the stream alone. A document that can't be read is quarantined with the reason, and the others go on. A patch for a
document that is not here, or one that does not follow the known revision, is answered by asking for the whole document
(`Folded.wanted`): no lookup where the update description suffices, and no guess where it does not.

Payloads never get here, and finished jobs leave.
"""
