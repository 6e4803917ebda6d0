"""The least that this protocol can cost with these drivers: its exchanges alone, with nothing around them.

There is no validation, no decision, no log, no metric, no audit and no retry, so what a whole system costs above its
floor is hascheduler's own, and what is below it no work on hascheduler can reach. The same holds for the time from a
submit to the start, a chain of majority-acknowledged writes::

    measure ─┬─► in_one_process   all that a job needs in one process, so that each exchange carries the most
             └─► in_processes     each replica and processor by itself, as a system goes on when one of them dies
                       │
                       ├─► intake      who takes jobs in
                       ├─► exchanges   who leads, and who works
                       └─► streams     who follows

What is written has a form (`forms`), from the least that the protocol needs to the documents of the system. `at_rest`
is what a replica takes when there is nothing to do, `at_start` what it takes to know all that waits.
"""
