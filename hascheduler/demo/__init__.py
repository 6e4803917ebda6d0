"""The main job, shown: the whole system, its leader killed again and again, and a report on it.

::

    cast        the schedules it plays with
    story       what happens when: schedules created, processes killed, the end
    stage       what the story asks of the place where it is told
    local       that place on this machine: processes of its own
    kubernetes  that place in a cluster: somebody's pods
    replicas    the API, by whichever replica answers
    evidence    what was expected, and what really happened
    watch       the system as it looks right now, read over HTTP
    view        the same for a person's eyes, with its pulse
    report      the verdict: expected, fired, missed, doubled, lag, takeover times

The evidence does not come from the scheduler's own counters: nominal times are worked out here, from the triggers as
the API returned them; effects are the lines that the ``log`` handler wrote to its own output; and what became of an
attempt is read from the jobs themselves.
"""
