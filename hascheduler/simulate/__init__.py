"""Simulation: the real dispatch core on virtual time, with figures and a picture of its decisions."""
