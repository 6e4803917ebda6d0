"""``hascheduler schedule`` and ``verdicts``: see, preview, make and change schedules."""
