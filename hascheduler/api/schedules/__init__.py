"""``/v1/schedules``: create, edit, pause, trigger, backfill, preview; what became of each nominal time.

`routes` creates, lists, replaces, patches and deletes. Every edit, a pause too, is one compare-and-set on the revision
that it was computed from (`edits`). `previews` shows the fires to come, `verdicts` what became of those that have
passed. `actions` and `backfill` make jobs outside the nominal times, or of those that have passed without one.

Which times are in force, undecided or to come is the business of `hascheduler.dispatch.schedules`; here are the
requests about them. `tenant_scope` hides other tenants' schedules.
"""
