"""The commands, run against a running service."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.evaluation.data import load
from app.schemas.vocabulary import Category, Verdict
from tests.support.commands import bouncer, complaint
from tests.support.http_service import call, http_service
from tests.support.pipelines import GOOD, SLOP


@pytest.fixture
def service(tmp_path: Path) -> Iterator[httpx.Client]:
    """A service whose model cannot be reached, and a budget for it."""
    with http_service(
        tmp_path / "service",
        level="model",
        anthropic_base_url="http://127.0.0.1:9",
        anthropic_api_key="test-" + "key-" * 4,
        budget_microdollars=1_000_000,
    ) as client:
        yield client


def offer(service: httpx.Client, text: str, session: str = "s1") -> str:
    answer = service.post("/v1/reviews", json=call(text, project="p", session=session, deadline_seconds=2)).json()
    return str(answer["reviews"][0]["id"])


def run(service: httpx.Client, *arguments: str) -> str:
    done = bouncer(*arguments, MEMORY_BOUNCER_URL=str(service.base_url))
    assert done.returncode == 0, done
    return done.stdout


def test_the_queue_is_listed_with_age_project_fault_and_first_words(service: httpx.Client) -> None:
    assert "Nothing is held" in run(service, "queue", "list")
    review_id = offer(service, GOOD[0])
    listed = run(service, "queue", "list")
    assert all(part in listed for part in (review_id, "0 min", " p ", "connection", GOOD[0][:40], "Held in all: 1"))
    (item,) = json.loads(run(service, "queue", "list", "--json"))["items"]
    assert (item["review_id"], item["text"]) == (review_id, GOOD[0])
    assert json.loads(run(service, "queue", "show", review_id[:30]))["text"] == GOOD[0]


def test_what_people_decided_becomes_labelled_texts_that_an_evaluation_reads(
    service: httpx.Client, tmp_path: Path
) -> None:
    secret = "ghp_" + "7hQ2mXv9KpLw4RtZb8Nc" + "3JfYd6Gs1TaEuVxk"
    run(service, "queue", "approve", offer(service, GOOD[0]), "--reason", f"So says {secret}.", "--category", "RULE")
    run(service, "queue", "reject", offer(service, GOOD[1]), "--reason", "No.")
    again = offer(service, GOOD[2])
    for verdict in ("approve", "reject"):
        run(service, "queue", verdict, again, "--reason", "I think.")
    file = tmp_path / "overrides.jsonl"
    assert "3" in run(service, "queue", "export", str(file))

    assert secret not in file.read_text(encoding="utf-8")
    labelled = {case.text: (case.verdict, case.category) for case in load(file)}
    assert labelled == {
        GOOD[0]: (Verdict.APPROVE, Category.RULE),
        GOOD[1]: (Verdict.REJECT, Category.NONE),
        GOOD[2]: (Verdict.REJECT, Category.NONE),
    }
    report = json.loads(bouncer("eval", str(file), "--json").stdout)
    assert report["cases"] == 3


def test_a_withdrawal_lists_what_has_to_leave_the_store(service: httpx.Client) -> None:
    service.put("/v1/projects/p", json={"level": "offline"})
    review_id = offer(service, GOOD[0], session="bad")
    service.post(f"/v1/reviews/{review_id}/stored", json={"store_id": "item-7"})
    for arguments, told in ((["--dry-run"], "To be withdrawn: 1"), (["--yes"], "Withdrawn: 1"), (["--yes"], ": 0")):
        listed = run(service, "withdraw", "--session", "bad", *arguments)
        assert told in listed
        assert "remove from store memory (item-7)" in listed
        assert GOOD[0] in listed


def test_overruling_says_what_to_remove(service: httpx.Client) -> None:
    service.put("/v1/projects/p", json={"level": "offline"})
    review_id = offer(service, GOOD[0])
    service.post(f"/v1/reviews/{review_id}/stored", json={"store_id": "item-7"})
    told = run(service, "queue", "reject", review_id, "--reason", "Not any more.")
    assert all(part in told for part in ("reject (was: approve)", "next session", "item-7"))


def test_mistakes_are_one_line(service: httpx.Client) -> None:
    url = {"MEMORY_BOUNCER_URL": str(service.base_url)}
    assert "no review" in complaint(bouncer("queue", "approve", "0" * 32, "--reason", "x", **url))
    review_id = offer(service, SLOP)
    assert "turned away" in complaint(
        bouncer("queue", "rewrite", review_id, "--reason", "x", "--text", "too short", **url)
    )
    assert "--reason" in complaint(bouncer("queue", "reject", review_id, "--reason", " ", **url))
    assert "--key or a --session" in complaint(bouncer("withdraw", **url))
    assert "nothing to write" in complaint(bouncer("queue", "export", "x.jsonl", **url))
    assert "bouncer serve" in complaint(bouncer("queue", "list", MEMORY_BOUNCER_URL="http://127.0.0.1:9"))
