"""From the change stream to decisions that are carried out, one loop a stage.

Each stage hands on in order and is bounded: a full inbox holds the stream back, a busy committer lets decisions gather
in the core. `batch_delay` spaces exchanges out where there are many. The inbox lets inputs gather that no decision
waits for: a lone job takes two steps of the core, one in which it is dispatched and one for all the rest.
"""
