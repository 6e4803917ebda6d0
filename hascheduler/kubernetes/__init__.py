"""Kubernetes: the lease as an object of ``coordination.k8s.io/v1``, for those who want to see the leader with kubectl.

Only the lease moves here. Everything that keeps jobs safe stays in MongoDB: the journal fences the leaders of this
lease as it fences those of the other, so what happens to the Lease (edited, deleted, held by two in turn) costs time,
never a job. An API server that is away takes the leader with it at its renew deadline, although MongoDB works; and as
the change stream has no Leases, a follower polls it once a retry period
(`hascheduler.daemon.leadership.lease_poller`).

What must hold:

* every write names the resource version *and* the uid of what was read: without a uid, a PUT to a Lease that was
  deleted makes a new one;
* what others have put into the object (labels, owners, annotations) stays;
* nothing that is written into a Lease ends a process, and nothing in it is needed to go on: the term that counts
  is the journal's;
* every exchange has a time limit, every error ends as `StoreUnavailable`, and no text of an error holds the token.
"""
