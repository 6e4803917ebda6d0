"""``/v1/work``: processors that have neither the broker nor the database register, fetch, start, finish."""
