"""A database and a broker inside the process: they behave as MongoDB and RabbitMQ do for this project.

::

    MemoryLeaseStore, MemoryJournal, …, MemoryChangeSource      one port each
          │ exchange: all of it, or nothing
    MemoryConnection      one client's connection to the database: where answers get lost
          │
    MemoryDatabase        the documents, in the form of `hascheduler.model.documents`
          │ every write
    History               every change, in one total order: what the streams deliver

    MemoryTransport, MemoryDeliveries ── MemoryBroker      queues by processor, the parked messages

The files are named as those of `hascheduler.ports`: ``access``, ``jobs``, ``leadership`` (with ``claims`` beside it),
``messages``, ``resources``, ``stream``, ``work``.

For tests and simulations. There is no clock and no chance in this room: the database's time stands still until a test
advances it (`MemoryDatabase.pass_time_to`), faults happen only on request, and the same calls in the same order give
the same answers. Every store behaves as its MongoDB counterpart; the contract tests run against both. The database is
the one owner of the documents, and an exchange with it never awaits, so a compare and the set after it need no lock.
"""
