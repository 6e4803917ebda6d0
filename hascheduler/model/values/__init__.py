"""Single values: how they are written, read, shown and kept. The nouns stand on them."""
