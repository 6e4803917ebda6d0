"""``/v1/schedules``: create, edit, pause, trigger, backfill, preview, and the verdict on each nominal time.

`routes` creates, lists, replaces, patches and deletes. Every edit, a pause too, is one compare-and-set on the revision
that it was computed from (`edits`). `previews` shows the fires to come, `verdicts` the verdicts on past ones.
`actions` and `backfill` make jobs outside the nominal times, or for past times that have none.

Which times are in force, undecided or to come is up to `hascheduler.dispatch.schedules`. Here are the requests about
them. `tenant_scope` hides other tenants' schedules.
"""
