"""Leadership: how a replica gets the lease, begins a term, keeps it, and gives it up.

There are two barriers in a row. The lease decides who may try; it can be wrong, as clocks and pauses are. The fence in
the journal decides who may write, and nothing about it depends on time. So an early challenge is safe, and the parts
that watch the leader (`liveness`, `lease_poller`) can only make a takeover quicker.

A leader decides by the time of `trusted_clock`: a replica whose clock nothing confirms does not lead. The reports of
takeovers (`failover`) decide nothing and delay nothing.
"""
