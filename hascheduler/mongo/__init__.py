"""MongoDB: the one place where the state of a deployment lives, behind the ports of `hascheduler.ports`.

Every store here is thin: one method, one exchange, no state of its own. A document belongs to its collection; who may
write which field is the table below. Stores take the database handle of `connection`, PyMongo's or Motor's.

================ ============================ ======================================= =================================
collection       written by                   write concern                           found by
================ ============================ ======================================= =================================
``leases``       MongoLeaseStore              majority                                _id (shard)
``journal``      MongoJournal                 majority: the insert is the fence       _id {shard, seq}, a range
``jobs``         MongoClaimStore (leader),    claims: 1, as the journal already has   _id; (state, _id): the snapshot
                 MongoWorkStore (processor),  a majority and what does not come back  and lists; (definition, _id),
                 MongoJobStore (API)          is applied again; all others: majority  (schedule, _id), (batch, _id) and
                                                                                      (tenant, state, _id): lists;
                                                                                      (tenant, idempotency_key): unique
``schedules``    MongoScheduleStore (API),    majority; cursor and counts as claims   _id (name)
                 MongoClaimStore (leader)
``verdicts``     MongoClaimStore (leader)     majority: no mirror would miss one      _id <schedule>:<time>, a range
``definitions``  MongoNounStore (API)         majority                                _id (name)
``lanes``        MongoNounStore (API)         majority                                _id (name)
``tenants``      MongoNounStore (API)         majority                                _id (name)
``processors``   MongoWorkStore               majority                                _id
``replicas``     MongoReplicaBoard            majority                                _id
``tokens``       MongoTokenStore (API)        majority                                _id (hash of the secret)
``audit``        MongoAuditStore (API)        majority                                _id (in the order of time)
``buckets``      MongoBucketStore (API)       1: a token lost at a fail-over is none  _id (tenant)
================ ============================ ======================================= =================================

What may be deleted some day has a TTL index on its ``expire_at``. Each index of jobs costs their writes; those of keys,
batches and schedules hold only the jobs that have such a thing.

What must hold:

* every write of a job is a compare-and-set on its state and attempt, built from `hascheduler.model.job.TRANSITIONS`
  (`moves`), and raises ``rev`` by one, so that a mirror can tell a gap from a change; but for progress, which none has;
* whatever a write did, repeating it changes nothing and gives the same answer;
* a read that decides is a majority read from the primary; only the claims read back what they wrote themselves;
* every exchange has a time limit and every error of the driver ends in `faults`; no text of an error holds a URI.
"""
