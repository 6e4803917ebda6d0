"""How much may be let in: jobs (`control`), schedules (`schedule_limits`), workers (`worker_registrations`)."""
