"""Ready-made processors, one definition a file, built on `hascheduler.processor` alone.

Run them with ``hascheduler processor processors.log processors.sleep``.
"""
