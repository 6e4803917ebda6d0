"""The commands that an operator runs on servers: ``doctor``, ``bootstrap mongodb``, ``migrate`` and ``check``."""
