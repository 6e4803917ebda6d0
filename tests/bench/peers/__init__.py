"""The same workloads on other schedulers and task queues beside this one, in one run on one machine.

``make bench-peers``, or some of it::

    python -m tests.bench.peers --systems hascheduler,agenda --workloads throughput,fires

How it goes::

    systems    who takes part, and the peers' packages, pinned, in .run/bench/peers-env: never the project's
    running    one system on servers of its own: submit, start schedules, kill an instance
    workloads  what is done to a system, and what its effects come to  ─► .run/bench/peers.json

Each folder holds one peer's program: it runs the jobs, submits them or makes the schedules, as the peer's documentation
says, and its docstring tells which settings were chosen and why. What happened is read from the effects alone: each
handler, ours or a peer's, appends a line with its job, the nominal time where the peer knows it, and the time. Every
workload has fresh servers.

- *Throughput*: from the first submit until the last of the jobs has run.
- *Fires*: schedules that are due every second, for so many seconds after a warm-up. A nominal time counts as fired if
  its effect comes at most `GRACE_MS` after the end. Where nominal times are unknown (Celery's beat), effects are
  counted instead, and there is no lag.
- *Failover*: SIGKILL of one instance, again and again, with a schedule counting as resumed when it has its first effect
  of a nominal time after the kill. With a period of 1 s that takes up to 1 s when nothing is wrong. An instance of a
  peer is a process that schedules and works; of ours it is the leading replica and one processor at once.
"""
