"""What may run now, and where: slots and resources of processors, locks, caps, quotas, rate limits, shares of lanes.

::

    SchedulingClasses ─► AdmissionLimits   which classes of jobs may run now: one bit each
    SlotPool                               processors and their free slots; which of them takes a job
    LockTable ◄── KeyRates                 which jobs exclude each other, and how many of one key may run, how fast
    LaneShares                             what each lane uses, for the criterion ``lane``
         ▲
      Occupancy                            all that one job holds while it has a slot, taken and given back at once

`heartbeats` tells which processors have fallen silent.
"""
