"""No secret reaches the database's files, the model or an answer."""

import secrets
import string
from pathlib import Path

import pytest

from app.errors import Invalid
from app.schemas.entries import EntryIn
from app.schemas.reviews import Candidate
from app.schemas.vocabulary import Category, Reason, Verdict
from tests.support.documents import document
from tests.support.pipelines import GOOD, PROJECT, Bench, ScriptedReviewer
from tests.support.postgres import on_sqlite

pytestmark = on_sqlite


def letters(count: int, alphabet: str = string.ascii_letters) -> str:
    """Random letters with digits strewn in, as generated secrets have them."""
    return "".join(secrets.choice(string.digits if place % 3 == 1 else alphabet) for place in range(count))


# Built when the test runs, so that no scanner finds a secret in this file.
CANARIES = {
    "github": lambda: ("gh" + "p_", letters(36)),
    "aws": lambda: ("AK" + "IA", "".join(secrets.choice("ABCDEFGH234567") for _ in range(16))),
    "slack": lambda: ("xox" + "b-", f"{letters(11, string.digits)}-{letters(24)}"),
    "openai": lambda: ("s" + "k-", letters(44)),
    "npm": lambda: ("np" + "m_", letters(36)),
    "stripe": lambda: ("sk_" + "live_", letters(24)),
    "url": lambda: ("post" + "gres://app:", letters(18)),
    "assigned": lambda: ("pass" + "word = ", letters(20)),
}


def written(folder: Path) -> bytes:
    """All bytes of the database: file, journal and shared memory."""
    files = sorted(folder.glob("bouncer.db*"))
    assert len(files) >= 2, "the journal is read as well"
    return b"".join(file.read_bytes() for file in files)


@pytest.mark.parametrize("kind", CANARIES)
@pytest.mark.parametrize("place", ["text", "key"])
async def test_a_secret_is_in_no_byte_of_the_database(
    paid: Bench, model: ScriptedReviewer, tmp_path: Path, kind: str, place: str
) -> None:
    prefix, secret = CANARIES[kind]()
    whole = f"{prefix}{secret}@db.internal/app" if kind == "url" else f"{prefix}{secret}"
    text = f"Always deploy with {whole} because the staging cluster accepts nothing else."
    candidate = Candidate(text=text) if place == "text" else Candidate(text=GOOD[0], key=text)
    answer = await paid.review(candidate)
    if place == "text":
        assert (answer.verdict, answer.reviews[0].reasons[0]) == (Verdict.REJECT, Reason.SECRET)
        assert "staging cluster" in answer.reviews[0].text, "the rest of the text is kept"
    assert secret.encode() not in written(tmp_path)
    assert secret not in answer.model_dump_json()
    assert all(secret not in brief.model_dump_json() for brief in model.briefs)


async def test_a_refusal_for_a_secret_does_not_send_the_agent_to_reword_it(bench: Bench) -> None:
    prefix, secret = CANARIES["github"]()
    (review,) = (await bench.review(f"Always push with {prefix}{secret} because the bot has no other way.")).reviews
    assert "Nothing is lost" not in review.message


async def test_a_secret_in_a_document_is_in_no_byte_of_the_database(bench: Bench, tmp_path: Path) -> None:
    prefix, secret = CANARIES["github"]()
    text = f"# Deploying\n\nExport the token {prefix}{secret} before the first deployment of the day.\n"
    bench.index.put_documents(PROJECT, [document("docs/deploy.md", text)])
    (passage,) = bench.rows("SELECT text FROM passage")
    assert passage["text"].startswith("Export the token [")
    assert secret.encode() not in written(tmp_path)


async def test_a_memory_with_a_secret_cannot_be_imported(bench: Bench, tmp_path: Path) -> None:
    prefix, secret = CANARIES["github"]()
    await bench.review(GOOD[0])
    with pytest.raises(Invalid, match="secret"):
        bench.index.add_entry(
            EntryIn(project=PROJECT, category=Category.RULE, text=f"Always push with {prefix}{secret}, the bot's own.")
        )
    assert secret.encode() not in written(tmp_path)
