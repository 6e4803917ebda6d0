"""The demo: a whole system whose leader is killed again and again, and a report on what was lost or doubled.

The evidence does not come from the scheduler's own counters: nominal times are computed here, from the triggers that
the API returned; effects are the lines that the ``log`` handler wrote to its own output; and the attempts are read from
the jobs themselves.
"""
