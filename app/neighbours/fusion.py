"""One ranking made of two."""

from collections import defaultdict
from collections.abc import Sequence

# The usual 60 prefers what stands in the middle of both rankings to the first of one, and finds fewer
# (benchmarks/shortlist, development split): a translation or an abbreviation is found by one way only. With 2 and eight
# places, at most seven others can come before the first of either ranking.
DAMPING = 2
# So many times the places that are wanted are looked at in each ranking.
DEPTH = 4


def fused(*rankings: Sequence[str]) -> list[str]:
    """Ids of all rankings, best first: reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009).

    An id scores 1 / (damping + place) in each ranking that has it; among equals the earlier ranking's comes first.
    """
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for place, item in enumerate(ranking, start=1):
            scores[item] += 1 / (DAMPING + place)
    return sorted(scores, key=lambda item: -scores[item])
