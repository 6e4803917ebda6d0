"""What a process shows its operators: metrics, health, traces, and the fields on every line of its log.

It decides nothing, and fails alone. Counters move where a thing happens; gauges are read at each scrape, and one that
can't be read is missing and counted. The API's port shows the metrics to its tokens, the health port to everybody.
"""
