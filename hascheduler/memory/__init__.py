"""A database and a broker inside the process: they do for us what MongoDB and RabbitMQ do, and nothing else.

::

    MemoryLeaseStore, MemoryJournal, …, MemoryChangeSource      one port each
          │ exchange: all of it, or nothing
    MemoryConnection      one client's way to the database: where answers get lost
          │
    MemoryDatabase        the documents, in the form of `hascheduler.model.documents`
          │ every write
    History               what changed, in one total order: what the streams tell

    MemoryTransport, MemoryDeliveries ── MemoryBroker      queues by processor, the parked messages

For tests and simulations. There is no clock and no chance in this room: the database's own time stands still until
somebody moves it (`MemoryDatabase.pass_time_to`), faults happen when they are asked for, and the same calls in the
same order give the same answers. Every store behaves as its sibling of the MongoDB room; the contract tests hold both
to it. The database is the one owner of the documents, and an exchange with it never awaits, so a compare and the set
after it need no lock.
"""
