"""Writes of processors: registrations, heartbeats, and the start and end of their attempts."""
