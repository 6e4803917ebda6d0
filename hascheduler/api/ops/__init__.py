"""What operators and their tools ask: the cluster, failovers, events, recordings, probes, metrics, ``/docs``."""
