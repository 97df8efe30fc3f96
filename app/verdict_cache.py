"""When two questions to the model are the same, so that its earlier answer serves again; reviews keep the answers."""

import json
from hashlib import sha256

from app.schemas.judging import Brief
from app.schemas.vocabulary import EntryStatus

_UNSEEN = {
    "neighbours": {"__all__": {"entry_id", "version", "store_id", "similarity"}},
    "passages": {"__all__": {"similarity"}},
}


def in_fixed_order(brief: Brief) -> Brief:
    """The brief with neighbours by age and passages by place, labelled anew.

    In order of similarity, another embedder would give the same texts other labels, and the answer names labels.
    """
    neighbours = sorted(brief.neighbours, key=lambda n: n.entry_id)
    passages = sorted(brief.passages, key=lambda p: (p.path, p.heading, p.text))
    return brief.model_copy(
        update={
            "neighbours": tuple(
                n.model_copy(update={"label": f"E{place}"}) for place, n in enumerate(neighbours, start=1)
            ),
            "passages": tuple(p.model_copy(update={"label": f"P{place}"}) for place, p in enumerate(passages, start=1)),
        }
    )


def key(brief: Brief, fingerprint: str) -> str:
    """Equal for equal candidates among equal neighbours and passages, asked of the same model with the same prompt.

    Counts only what the model goes by: it is never shown ids, versions and similarities, and that a pending entry has
    been stored since is no other question.

    Args:
        brief: the candidate with its surroundings, in fixed order.
        fingerprint: of the reviewer that would be asked.
    """
    seen = brief.model_dump(mode="json", exclude=_UNSEEN)
    for neighbour in seen["neighbours"]:
        neighbour["status"] = neighbour["status"] == EntryStatus.UNCONFIRMED
    return sha256(json.dumps([fingerprint, seen], sort_keys=True).encode()).hexdigest()
