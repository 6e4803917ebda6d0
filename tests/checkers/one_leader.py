"""No two replicas that are awake believe at once that they lead, and none leads on a mirror that hears nothing, or on a
lease that it could not renew in time.

The second wall would keep two leaders from doing harm; that there are none is the first one's promise. It holds for
clocks that run at one rate, as the trust of a leader and the patience of a follower are both measured. And it does not
hold for a leader that stood still, or was cut off, and was followed for that: it may still trust its lease when it goes
on, until it looks at it.
"""

from tests.checkers.evidence import Evidence


def one_leader(evidence: Evidence) -> list[str]:
    wrong = []
    for sighting in evidence.sightings:
        leaders = [id for id in sighting.leaders if id not in sighting.overtaken]
        if len(leaders) > 1 and not sighting.clocks_differ:
            wrong.append(f"{' and '.join(leaders)} lead at {sighting.at_s:.3f} s")
        wrong += [f"{id} leads at {sighting.at_s:.3f} s and has long heard nothing" for id in sighting.deaf]
        if not sighting.clocks_differ:
            wrong += [f"{id} leads at {sighting.at_s:.3f} s on a lease long not renewed" for id in sighting.lapsed]
    return wrong
