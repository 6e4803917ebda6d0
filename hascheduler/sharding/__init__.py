"""Several shards behind one API: each port of the API over one such adapter a shard.

::

    routes ─► ports ─► sharding ─┬─► shard 0, the home (its stores, its replica's view)
                                 ├─► shard 1
                                 └─► …

A shard is a database with its own stream, lease, journal and leader; nothing of the protocol knows of the others. This
room finds the shard of a call, or asks all and merges:

* what has a tenant goes to the shard of its slot (`hascheduler.model.routing`);
* what names a submitted job goes by the slot in its id, what names a schedule or a job of one by the reserved name;
* an id that tells nothing (of before there were several shards) is looked for in all;
* lists are merged in the one order that they have in each shard, so that one position is enough for all;
* where a replica follows some shards alone (`following`), each `shard` is answered from its mirror, or from what the
  others tell of it (`reports`, `distant`), or by one of them;
* definitions, lanes, calendars, tenants, pauses, tokens and the audit log have their home in shard 0.

A call that would have to cross shards to keep its promise is refused (`InvalidInput`) with the names of both.
"""
