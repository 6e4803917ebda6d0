"""From the change stream to applied decisions, one loop a stage.

Each stage is ordered and bounded: a full inbox holds the stream back, a busy committer lets decisions gather in the
core. If there are many exchanges, `batch_delay` spaces them out. The inbox lets inputs gather that no decision waits
for: a lone job takes two steps of the core, one that dispatches it and one for all the rest.
"""
