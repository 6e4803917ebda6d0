"""What would happen: the real dispatch core on virtual time, with figures and a picture of its decisions.

The same scenario gives the same outcome on every machine; a recording of a leader is replayed, or run as a scenario.
"""
