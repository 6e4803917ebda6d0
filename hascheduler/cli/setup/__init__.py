"""The commands that an operator runs on servers: ``bootstrap mongodb``, ``secrets``, ``migrate`` and ``check``."""
