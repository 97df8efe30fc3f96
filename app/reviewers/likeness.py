"""How alike two texts are, in numbers for the boosted trees that weigh whether they say the same."""

from math import log

import numpy as np

from app.reviewers.pairs import Comparison
from app.reviewers.pieces import Floats
from app.reviewers.spelling import NEGATION

NEAR = 0.5
NOTHING_STRANGE = (1.0, 0.0)


def measures(compared: Comparison) -> Floats:
    """What both say, what only one says, and what may turn the sense: numbers in an order that never changes."""
    named = {**_shared(compared), **_strange(compared), **_turned(compared)}
    return np.array(list(named.values()), dtype=np.float32)


def _shared(compared: Comparison) -> dict[str, float]:
    """What both say, and how long they are."""
    stored, offered = compared.stored, compared.offered
    best, other_best = compared.nearest
    covered, other_covered = float(stored.vocabulary[2] @ best), float(offered.vocabulary[2] @ other_best)
    least, most = compared.overlap
    size, other_size = max(1, len(stored.core)), max(1, len(offered.core))
    return {
        "cosine": float(stored.meaning @ offered.meaning),
        "covered": covered,
        "other covered": other_covered,
        "both covered": covered * other_covered,
        "far": float(stored.vocabulary[2] @ (best < NEAR)),
        "other far": float(offered.vocabulary[2] @ (other_best < NEAR)),
        "farthest": float(best.min(initial=1.0)),
        "other farthest": float(other_best.min(initial=1.0)),
        "shared by the shorter": least,
        "shared by the longer": most,
        "runs": len(stored.runs & offered.runs) / max(1, min(len(stored.runs), len(offered.runs))),
        "ratio": log(other_size / size),
        "shorter": min(size, other_size),
        "size": size,
        "other size": other_size,
        "numbers": len(stored.numbers & offered.numbers),
        "names": len(stored.names & offered.names),
    }


def _strange(compared: Comparison) -> dict[str, float]:
    """What only one of them says."""
    stored, offered = compared.stored, compared.offered
    best, other_best = compared.nearest
    lost_names, added_names = compared.strange_names
    nearness, weight = _strangers(stored.vocabulary[0], stored.vocabulary[2], best, set(compared.lost))
    other_nearness, other_weight = _strangers(
        offered.vocabulary[0], offered.vocabulary[2], other_best, set(compared.added)
    )
    lost = [stem for stem in compared.lost if stem[0] not in (NEGATION, "#")]
    added = [stem for stem in compared.added if stem[0] not in (NEGATION, "#")]
    return {
        "lost": len(lost),
        "added": len(added),
        "share lost": len(lost) / max(1, len(stored.core)),
        "share added": len(added) / max(1, len(offered.core)),
        "nearness of the lost": nearness,
        "nearness of the added": other_nearness,
        "weight of the strangest lost": weight,
        "weight of the strangest added": other_weight,
        "numbers lost": len(stored.numbers - offered.numbers),
        "names lost": len(lost_names),
        "names added": len(added_names),
        "adds a clause": compared.adds_clause,
    }


def _strangers(stems: list[str], telling: Floats, best: Floats, strange: set[str]) -> tuple[float, float]:
    """How near the other text comes to the strange stems, and how much the one that it comes least near to tells."""
    places = [place for place, stem in enumerate(stems) if stem in strange]
    if not places:
        return NOTHING_STRANGE
    return float(best[places].mean()), float((telling[places] * (1 - best[places])).max())


def _turned(compared: Comparison) -> dict[str, float]:
    """What may turn the sense."""
    stored, offered = compared.stored, compared.offered
    return {
        "negations": compared.negations,
        "one negates": bool(stored.counted[NEGATION]) != bool(offered.counted[NEGATION]),
        "changes": stored.changes,
        "other changes": offered.changes,
        "one has a condition": stored.conditional != offered.conditional,
        "turned": compared.turned,
        "opposed": compared.opposed,
        "refocused": compared.refocused,
        "resteps": compared.resteps,
        "replaced": compared.replaced,
        "displaced": compared.displaced,
        "share displaced": compared.displaced / max(1, compared.shared),
        "in order": compared.is_in_order,
    }
