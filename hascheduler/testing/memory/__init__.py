"""A database and a broker inside the process: they behave as MongoDB and RabbitMQ do for this project.

The stores of each port make exchanges with the documents of `database`, each all of it or nothing; the files are named
as those of `hascheduler.ports`. `messages` has the broker.

For tests and simulations. There is no clock and no chance in this room: the database's time stands still until a test
advances it (`MemoryDatabase.pass_time_to`), faults happen only on request, and the same calls in the same order give
the same answers. Every store behaves as its MongoDB counterpart; the contract tests run against both. The database is
the one owner of the documents, and an exchange with it never awaits, so a compare and the set after it need no lock.
"""
