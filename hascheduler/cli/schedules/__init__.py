"""The commands ``hascheduler schedule`` and ``verdicts``: show, preview, make and change schedules."""
