"""OpenTelemetry as the recorder of traces, behind `hascheduler.telemetry.tracing.Tracer`.

::

    Tracer ─► BatchSpanProcessor ─► Exporter ─► OTLPSpanExporter ─► a collector, over HTTP
    in the    a queue with bounds,   tells once   tries again for
    loop      the oldest spans go    of trouble   a while

Recording must never slow or stop the scheduler: a span costs memory until it is exported, a thread of the SDK exports,
and a collector that does not answer costs spans. The optional extra ``otel`` brings what this room imports; it is
imported only where tracing is asked for.
"""
