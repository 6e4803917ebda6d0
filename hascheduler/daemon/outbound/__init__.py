"""What leaves the process: messages to processors, events of jobs, and what held requests wait for.

Nothing here may hold up a decision: queues are bounded, what does not fit is dropped and repaired (a message is
published again by the core, a follower that is too slow gets `Lagging`).
"""
