"""What each noun looks like outside, described once: its fields with their units, bounds, defaults and texts.

::

    a request, a file, an answer  ──validation──►  a model of this room  ──►  the core's value (`hascheduler.model`)
                                                   a model of this room  ◄──  the core's value

    fields        the types that nouns share: names, spans, instants, amounts of resources
    validation    what a model refuses, as an `InvalidInput` with its path
    normal_form   what a model makes of a request or an answer, so that two can be compared
    trigger, job, schedule

HTTP takes and answers these models, `hascheduler apply` validates by them, and the normal form in
which two resources are compared is what a model writes without its defaults. A model holds the core's units; only its
JSON has spans and instants as texts. Stored documents stand apart, below `hascheduler.model.documents`: every replica
decodes them for each change, in milliseconds, and also those that no request could have asked for.
"""
