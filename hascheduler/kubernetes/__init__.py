"""Kubernetes: the lease as an object of ``coordination.k8s.io/v1``, for those who want to see the leader with kubectl.

Only the lease moves here. Everything that keeps jobs safe stays in MongoDB: the journal fences the leaders of this
lease like those of the other, so whatever happens to the Lease (edited, deleted, held by two in turn) costs time, never
a job. If the API server is away, the leader stops at its renew deadline, although MongoDB works. The change stream has
no Leases, so a follower polls it once a retry period (`hascheduler.daemon.leadership.lease_poller`).

What must hold:

* every write names the resource version *and* the uid of what was read: without a uid, a PUT to a deleted Lease makes
  a new one;
* what others have put into the object (labels, owners, annotations) stays;
* nothing written into a Lease ends a process, and nothing in it is needed to go on: the term that counts is the
  journal's;
* every exchange has a time limit, every error ends as `StoreUnavailable`, and no error text holds the token.
"""
