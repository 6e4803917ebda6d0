"""What a process shows its operators: metrics, health, traces, and the fields on every line of its log.

It decides nothing, and its failures stay here. Counters move when a thing happens; gauges are read at each scrape, and
one that can't be read is left out and counted. The API's port shows the metrics to its tokens, the health port to
everybody.
"""
