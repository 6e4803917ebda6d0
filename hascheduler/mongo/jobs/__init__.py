"""Jobs as the API submits, changes, lists and counts them."""
