"""Hold the live documents of MongoDB as lean references, folded from one ordered stream.

::

    snapshot, stream, fetches ──► Change ──► Mirror.fold ──► Folded: facts, in order ──► dispatch core, elector, views
                                                                     events, marks, documents to read

The newest ``rev`` wins, so a snapshot and the stream may overlap in any way; for deletes the order of the stream alone
counts. A document that can't be read is quarantined with the reason, and the others go on. If a patch is for a document
that is not here, or does not follow the known revision, the mirror asks for the whole document (`Folded.wanted`): no
lookup if the update description suffices, no guess if it does not.

Payloads never get here, and finished jobs leave.
"""
