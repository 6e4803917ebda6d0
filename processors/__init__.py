"""Ready-made processors, one definition a module, built on `hascheduler.processor` alone.

::

    log       writes a line                            sleep     sleeps, for trying things out
    webhook   calls a URL, public ones unless allowed  command   runs a program that the operator has listed

Run them with ``hascheduler processor processors.log processors.webhook …``.

``worker.mjs`` and ``worker.sh`` are whole processors in other languages: they speak HTTP
(`hascheduler.api.work.routes`), and need neither the broker nor the database.
"""
