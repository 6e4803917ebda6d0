"""The simulator: three replicas and three processors, a database and a broker, in one thread and on virtual time.

::

    SimLoop      processes, their clocks, who runs next            one seed decides everything
    Network      delays, losses, partitions, late answers
    Server       a replica set: majority, w:1, fail-over           the real daemon and SDK run on top,
    SimBroker    queues that are lost, doubled, late, blocked      unchanged but for their ports
    Faults       what goes wrong, when and for how long
    checkers     what must hold, judged from outside (tests.checkers)

``make cluster-sim SEEDS=500`` runs many; ``python -m tests.cluster_simulation --seed N`` replays one, with its
transcript.
"""
