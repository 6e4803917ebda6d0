"""What processors write: registrations, heartbeats, and the start and end of their attempts."""
