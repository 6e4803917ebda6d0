"""The change stream of the database, and the snapshot that it begins with: everything that a mirror knows."""
