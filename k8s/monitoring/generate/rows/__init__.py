"""The dashboard's rows, one a file, in the order in which a person asks."""
