"""``/v1/schedules``: create, edit, pause, trigger, backfill, preview; what became of each nominal time."""
