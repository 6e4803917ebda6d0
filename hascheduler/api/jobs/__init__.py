"""``/v1/jobs``: submit one or many, list, explain, change."""
