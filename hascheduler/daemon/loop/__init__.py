"""From the change stream to decisions that are carried out, one loop a stage.

::

    feeder ─► (router) ─► inbox ─► stepper ─► committer
    mirror    facts       inputs   the core   journal, then apply

Each stage hands on in order and is bounded: a full inbox holds the stream back, a busy committer lets decisions gather
in the core. `batch_delay` spaces exchanges out where there are many. The inbox lets inputs gather that no decision
waits for: a lone job takes two steps of the core, one in which it is dispatched and one for all the rest.

Beside the stages: `replica_heartbeat` writes this replica's own record and measures the stream by its echo,
`digest_check` compares the mirrors of all replicas, `invariant_checker` looks through the database for the leader,
`cost_checkpoint` saves what the core has learned, `recorder` lets people record what the core is given and decides,
`attempt_metrics` counts how attempts begin and end.
"""
