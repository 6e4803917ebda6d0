"""Read the database for the check of invariants, which `hascheduler.check` judges. Nothing here writes."""
