"""A database and a broker inside the process: they behave as MongoDB and RabbitMQ do for this project.

The stores of each port make exchanges with the documents of `database`, each atomic; the files are named as those of
`hascheduler.ports`. `messages` has the broker.

For tests and simulations. This room has no clock and no randomness: the database's time stops until a test advances it
(`MemoryDatabase.pass_time_to`), faults happen only on request, and the same calls in the same order give the same
answers. Every store behaves as its MongoDB counterpart; the contract tests run against both. The database is the one
owner of the documents, and an exchange with it never awaits, so a compare and the set after it need no lock.
"""
