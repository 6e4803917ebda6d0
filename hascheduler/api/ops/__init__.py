"""The routes for operators and their tools: the cluster, failovers, events, recordings, probes, metrics, ``/docs``."""
