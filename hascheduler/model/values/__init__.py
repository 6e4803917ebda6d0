"""Single values, on which the nouns are built: how they are written, read, shown and stored."""
