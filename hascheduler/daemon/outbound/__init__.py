"""Everything that leaves the process: messages to processors, events of jobs, and ends for held requests.

Nothing here may delay a decision: queues are bounded, what does not fit is dropped and repaired (the core publishes a
message again, a slow follower gets `Lagging`).
"""
