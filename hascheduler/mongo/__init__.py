"""MongoDB holds the whole state of a deployment, behind the ports of `hascheduler.ports`.

Every store here is thin: one method, one exchange, no state of its own. The table below names the writers of each
collection. Stores take the database handle of `connection`, PyMongo's or Motor's.

================ ============================ ======================================= =================================
collection       written by                   write concern                           found by
================ ============================ ======================================= =================================
``leases``       MongoLeaseStore              majority                                _id (name)
``journal``      MongoJournal                 majority: the insert is the fence       _id (name, seq), a range
``jobs``         MongoClaimStore (leader),    claims: 1, as the journal already has   _id; the snapshot by state;
                 MongoWorkStore (processor),  a majority, and the leader applies      lists by (submitted_at_ms, _id),
                 MongoJobStore (API)          again what does not come back;          also within one state, definition,
                                              all others: majority                    schedule, target, tenant or batch;
                                                                                      (tenant, idempotency_key): unique
``schedules``    MongoScheduleStore (API),    majority; cursor and counts as claims   _id (name)
                 MongoClaimStore (leader)
``verdicts``     MongoClaimStore (leader)     majority: no mirror would miss one      _id <schedule>:<time>, a range
``definitions``  MongoResourceStore (API)     majority                                _id (name)
``lanes``        MongoResourceStore (API)     majority                                _id (name)
``tenants``      MongoResourceStore (API)     majority                                _id (name)
``processors``   MongoWorkStore               majority                                _id
``replicas``     MongoReplicaBoard            majority                                _id
``tokens``       MongoTokenStore (API)        majority                                _id (hash of the secret)
``audit``        MongoAuditStore (API)        majority                                _id (ordered by time)
``buckets``      MongoBucketStore (API)       1: losing a token at a failover is fine _id (tenant)
``accounts``     MongoAccountStore (leader)   majority                                _id (name)
``failovers``    MongoFailoverStore (leader)  majority                                _id (name, term), a range
``meta``         `schema.migrate`             majority                                _id ("schema")
================ ============================ ======================================= =================================

A collection whose documents expire has a TTL index on ``expire_at``. Each index of jobs makes their writes slower; the
indexes of keys, batches and schedules hold only the jobs with such a field.

What must hold:

* every write of a job is a compare-and-set on its state and attempt, built from `hascheduler.model.job.TRANSITIONS`
  (`state_updates`), and raises ``rev`` by one, so that a mirror can tell a gap from a change; progress is exempt, as no
  mirror has it;
* repeating a write changes nothing and returns the same answer;
* a read that decides is a majority read from the primary; only the claims read back their own writes;
* every exchange has a time limit, and every error of the driver ends in `faults`; no error text holds a URI.
"""
