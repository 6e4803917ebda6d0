"""The demo: a whole system whose leader is killed again and again, and a report on what was lost or doubled.

::

    scenario      the steps: schedules created, leaders and a processor killed, the end
    environment   what a scenario needs of the system that it runs on (a protocol)
    local         that system on this machine: processes of its own
    kubernetes    that system in a cluster: pods that are there already
    replica_api   the SDK, by any replica that answers
    evidence      the expected nominal times, the observed effects, and the result of comparing them
    dashboard     the live view on a terminal
    run           scenario, dashboard and report put together

The evidence does not come from the scheduler's own counters: nominal times are computed here, from the triggers that
the API returned; effects are the lines that the ``log`` handler wrote to its own output; and the attempts are read from
the jobs themselves.
"""
