"""Two hundred reviews wait for a slow model at once in one process, and hold nobody else up."""

import asyncio
from pathlib import Path

import httpx

from tests.support.http_service import call
from tests.support.messages_api import asking_always, messages_api, reply, together
from tests.support.service import running_service

MANY = 200
PATIENCE = 120.0


async def test_two_hundred_reviews_wait_for_a_slow_model_at_once(tmp_path: Path, database_url: str) -> None:
    """The model answers nobody until all of them have asked it."""
    with messages_api(together(reply(), MANY)) as model:
        settings = asking_always(
            model,
            MEMORY_BOUNCER_DATABASE_URL="" if database_url.startswith("sqlite") else database_url,
            MEMORY_BOUNCER_MODEL_TIMEOUT_SECONDS=str(PATIENCE),
        )
        with running_service(tmp_path, settings) as service:
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(
                base_url=service.url, trust_env=False, timeout=PATIENCE, limits=limits
            ) as client:
                (await client.put("/v1/projects/free", json={"level": "offline"})).raise_for_status()
                asking = [
                    asyncio.create_task(client.post("/v1/reviews", json=_body(number))) for number in range(MANY - 1)
                ]
                while model.thinking < MANY - 1:  # noqa: ASYNC110 - the model has a loop of its own
                    await asyncio.sleep(0.05)
                ready = await client.get("/readyz")
                free = await client.post("/v1/reviews", json=call(_text(MANY), project="free"))
                assert (ready.status_code, free.json()["verdict"]) == (200, "approve")
                assert service.metrics()["bouncer_reviews_in_flight"] == MANY - 1
                asking.append(asyncio.create_task(client.post("/v1/reviews", json=_body(MANY - 1))))
                answers = [response.json() for response in await asyncio.gather(*asking)]
    assert [answer.get("verdict", answer) for answer in answers] == ["approve"] * MANY
    assert model.most_thinking == MANY


def _text(number: int) -> str:
    return f"Always ring bell {number} twice at low tide, because pilot boat {number} waits for it beyond the bar."


def _body(number: int) -> dict[str, object]:
    return call(_text(number), project=f"p{number % 7}", session=f"s{number}", deadline_seconds=PATIENCE)
