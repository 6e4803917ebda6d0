"""Every decoder is given what nobody meant to write, and may refuse it, in few words and soon.

::

    decoders ──► inputs ──► run ──► an answer, or an error that the decoder's docstring promises
                          └─► CPU of the thread and memory for each input: bounds that no input may break

`test_fuzz.py` is a short run that is always the same; ``make fuzz MINUTES=10`` is a long one with a seed of its own.
"""
