"""Ready-made handlers, one definition a module: ``hascheduler processor hascheduler.handlers.log``."""
