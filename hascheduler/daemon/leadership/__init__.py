"""Who leads: how a replica gets the lease, begins a term, keeps it, and gives it up.

Two walls in a row. The lease says who may try; it can be wrong, as clocks and pauses are. The fence in the journal says
who may write, and nothing about it depends on time. So a challenge that comes too early is safe, and what watches the
leader (`liveness`, `lease_poller`) may only make a takeover quicker.

`trusted_clock` is the time that a leader decides by: a replica whose clock nothing confirms does not lead. What
reports a takeover (`failover`) decides nothing and delays nothing.
"""
