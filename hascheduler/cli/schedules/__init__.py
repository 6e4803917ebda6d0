"""``hascheduler schedule``: see, preview, make and change schedules.

::

    show         list, get, verdicts
    upcoming     timeline, calendar
    preview      preview                       local_preview computes without a replica, preview_page shows
    edit         add, edit                     options and trigger_options: what their options mean in a request
    actions      pause, resume, reset, trigger, backfill, delete
    tables       schedules as tables and pages
"""
