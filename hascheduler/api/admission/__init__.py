"""Limits on admission: jobs (`control`), schedules (`schedule_limits`), workers (`worker_registrations`)."""
