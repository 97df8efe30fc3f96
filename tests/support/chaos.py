"""Agents that write memories through the real hook while their service is killed again and again.

    found = Chaos(folder, database_url, seed=1).run(kills=10)
    assert found.faults == []

What must hold afterwards is reckoned from three things: what each hook was asked and said, its journal, and the
database. See `Chaos.faults`.
"""

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, text

from app.agents.claude_code import launcher_command
from hooks import store_hygiene_gate as hook
from tests.support.messages_api import Answer, MessagesApi, Request, Step, error, messages_api, reply, slow
from tests.support.quick_service import QuickService

HOOKS = Path(hook.__file__).parent
AGENTS = 4
DEADLINE_SECONDS = 4.0
LEASE_SECONDS = 40.0
FLUSH_SECONDS = 120.0
MOST_ANSWERS = 2 * AGENTS
LONGEST_LIFE = 20.0
TOOL = "mcp__memory__create_entities"
REFUSED = frozenset({"reject", "rewrite", "update", "duplicate"})
COUNT_CALLS = (
    "SELECT c.session_id, c.tool_call_id, r.verdict, r.text, p.name"
    " FROM call c JOIN project p ON p.id = c.project_id LEFT JOIN review r ON r.call_id = c.id"
)
THINGS = [
    "lamp",
    "lens",
    "mirror",
    "shutter",
    "stair",
    "rail",
    "bell",
    "buoy",
    "chart",
    "flag",
    "rope",
    "mast",
    "gauge",
    "valve",
    "hinge",
    "bolt",
]
REASONS = (
    "because salt blinds it overnight",
    "or the relief crew cannot find it in fog",
    "since the spare ones were lost in the flood",
    "because the supplier mislabels every second batch",
)


@dataclass(frozen=True)
class Offer:
    """What a hook was asked, and what it answered."""

    project: str
    session: str
    call_id: str
    text: str
    policy: str
    decision: str | None
    said: str

    @property
    def told(self) -> str:
        """What the agent took from it: `approved`, `refused`, or `unjudged` for what the failure policy decided."""
        if "not reviewed" in self.said:
            return "unjudged"
        return "refused" if self.decision == "deny" else "approved"


@dataclass
class Found:
    """What was found at the end."""

    kills: int = 0
    offers: int = 0
    states: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Chaos:
    """One run on one database."""

    def __init__(self, folder: Path, database_url: str, *, seed: int, wait_for_leases: bool = False) -> None:
        """Nothing runs yet.

        Args:
            folder: for data, journal and logs.
            database_url: an empty database.
            seed: of everything that is drawn by lot.
            wait_for_leases: whether to wait until interrupted calls lapse; else their time is put back.
        """
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._database_url = database_url
        self._random = random.Random(seed)
        self._wait_for_leases = wait_for_leases
        self._stop = threading.Event()
        self._offers: list[Offer] = []
        self._shared = [self._text(f"everybody's {number}") for number in range(12)]

    def run(self, kills: int) -> Found:
        """Kill the service so many times under load, bring it back, and look at what is there."""
        started = time.monotonic()
        found = Found(kills=kills)
        with messages_api(self._model()) as model, self._service(model) as service:
            agents = [threading.Thread(target=self._agent, args=(number,)) for number in range(AGENTS)]
            for agent in agents:
                agent.start()
            for _ in range(kills):
                self._let_live()
                service.kill()
                service.start()
            self._stop.set()
            for agent in agents:
                agent.join()
            self._look_before_flush(found)
            self._let_leases_lapse()
            service.kill()
            service.start()  # which sweeps
            self._flush(found)
            self._look(found, model)
        found.offers = len(self._offers)
        found.seconds = time.monotonic() - started
        return found

    def _let_live(self) -> None:
        """Return at a random moment after some hooks, or none, have got their answers."""
        wanted = len(self._offers) + self._random.randint(0, MOST_ANSWERS)
        give_up = time.monotonic() + LONGEST_LIFE
        while len(self._offers) < wanted and time.monotonic() < give_up:
            time.sleep(0.01)
        time.sleep(self._random.uniform(0.0, 0.5))

    @contextmanager
    def _service(self, model: MessagesApi) -> Iterator[QuickService]:
        service = QuickService(
            self._folder / "data",
            {
                "MEMORY_BOUNCER_DATABASE_URL": self._database_url,
                "MEMORY_BOUNCER_ANTHROPIC_API_KEY": "test-" + "key-" * 4,
                "MEMORY_BOUNCER_ANTHROPIC_BASE_URL": model.url,
                "MEMORY_BOUNCER_BUDGET_MICRODOLLARS": "1000000000",
                "MEMORY_BOUNCER_CASCADE": "off",
                "MEMORY_BOUNCER_MODEL_CALLS_PER_MINUTE": "0",
                # However long the run takes: what was approved and never reported as stored would refuse nobody then.
                "MEMORY_BOUNCER_PENDING_MINUTES": "1440",
            },
        )
        try:
            service.start()
            self._url = service.url
            config = self._config()
            end = time.monotonic() + FLUSH_SECONDS
            hook.call_service(config, "PUT", "/v1/projects/asks-the-model", {"level": "model"}, end)
            yield service
        finally:
            self._stop.set()
            service.close()

    def _model(self) -> Answer:
        draw = random.Random(self._random.random())

        def answer(_: Request) -> Step:
            step = error(529, kind="overloaded_error") if draw.random() < 0.1 else reply()
            return slow(step, before_headers=draw.uniform(0.0, 0.4))

        return answer

    # --- agents -------------------------------------------------------------------------------------------------

    def _agent(self, number: int) -> None:
        draw = random.Random(f"{number} {self._random.random()}")
        shared = list(self._shared)
        draw.shuffle(shared)
        turn = 0
        while not self._stop.is_set():
            turn += 1
            equal = shared and draw.random() < 0.15
            offer = self._offer(
                project=draw.choice(("judged-offline", "asks-the-model")),
                session=f"agent-{number}",
                call_id=f"agent-{number}-{turn}",
                text=shared.pop() if equal else self._text(f"{number}.{turn}", draw),
                # What is held is in no store, and may be offered by another: only what is let through is there once.
                policy="allow" if equal else draw.choice(("allow", "hold")),
            )
            self._offers.append(offer)
            if offer.told == "unjudged":
                time.sleep(draw.uniform(0.2, 1.0))  # an agent does other things then, and asks nobody twice a second
            if offer.decision is None and draw.random() < 0.7:
                self._hook("PostToolUse", offer, tool_response={"content": "stored"})

    def _offer(self, *, project: str, session: str, call_id: str, text: str, policy: str) -> Offer:
        offer = Offer(project, session, call_id, text, policy, None, "")
        said = self._hook("PreToolUse", offer)
        decision = said.get("permissionDecision")
        told = str(said.get("permissionDecisionReason", "")) + str(said.get("additionalContext", ""))
        return replace(offer, decision=decision, said=told)

    def _hook(self, name: str, offer: Offer, **more: object) -> dict[str, Any]:
        folder = self._folder / offer.project
        folder.mkdir(exist_ok=True)
        (folder / ".bouncer.json").write_text(json.dumps({"project": offer.project}), encoding="utf-8")
        event = {
            "hook_event_name": name,
            "session_id": offer.session,
            "cwd": str(folder),
            "tool_name": TOOL,
            "tool_use_id": offer.call_id,
            "tool_input": {"entities": [{"name": "light", "entityType": "note", "observations": [offer.text]}]},
            **more,
        }
        done = subprocess.run(
            launcher_command(HOOKS, sys.executable),
            input=json.dumps(event),
            env={**self._environment(), "MEMORY_BOUNCER_ON_FAILURE": offer.policy},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        said: dict[str, Any] = json.loads(done.stdout or "{}").get("hookSpecificOutput", {})
        return said

    def _environment(self) -> Mapping[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self._folder),
            "XDG_STATE_HOME": str(self._folder / "state"),
            "XDG_CONFIG_HOME": str(self._folder / "config"),
            "MEMORY_BOUNCER_URL": self._url,
            "MEMORY_BOUNCER_DEADLINE": str(DEADLINE_SECONDS),
        }

    def _config(self) -> hook.Config:
        return hook.load_config(str(self._folder), self._environment())

    def _text(self, mark: str, draw: random.Random | None = None) -> str:
        draw = draw or self._random
        thing, other = draw.sample(THINGS, 2)
        place = f"{draw.getrandbits(40):010x}"
        return f"Always check the {thing} at pier {place} before the {other}, {draw.choice(REASONS)} (note {mark})."

    # --- what is there afterwards -------------------------------------------------------------------------------

    def _rows(self, query: str) -> list[Any]:
        engine = create_engine(self._database_url, poolclass=NullPool)
        with engine.begin() as connection:
            return list(connection.execute(text(query)).all())

    def _journalled(self) -> set[str]:
        return {str(record.get("tool_call_id")) for record in hook.journal_read(self._config())}

    def _look_before_flush(self, found: Found) -> None:
        """While the service is as the last kill left it, no text is only in a process's memory."""
        kept = {row[1] for row in self._rows(COUNT_CALLS)} | self._journalled()
        found.faults += [f"nowhere: {offer.call_id}" for offer in self._offers if offer.call_id not in kept]

    def _let_leases_lapse(self) -> None:
        if self._wait_for_leases:
            time.sleep(LEASE_SECONDS)
            return
        engine = create_engine(self._database_url, poolclass=NullPool)
        with engine.begin() as connection:
            for statement in (
                "UPDATE call SET open_until = created_at WHERE open_until IS NOT NULL",
                "UPDATE ledger SET open_until = created_at WHERE open_until IS NOT NULL",
            ):
                connection.execute(text(statement))

    def _flush(self, found: Found) -> None:
        """Have the journal reviewed; while that gets on, it goes on."""
        done, left = hook.journal_flush(self._config(), FLUSH_SECONDS)
        while done and left:
            done, left = hook.journal_flush(self._config(), FLUSH_SECONDS)
        if left:
            found.faults.append(f"{left} texts of the journal could not be reviewed")

    def _look(self, found: Found, model: MessagesApi) -> None:
        calls: dict[str, list[Any]] = {}
        for row in self._rows(COUNT_CALLS):
            calls.setdefault(row[1], []).append(row)
        pending = {str(record.get("tool_call_id")) for record in hook.journal_pending(self._config())}
        for offer in self._offers:
            rows = calls.get(offer.call_id, [])
            self._look_at(found, offer, [row[2] for row in rows], waits=offer.call_id in pending)
        self._look_for_twins(found)
        self._look_at_money(found, model)

    @staticmethod
    def _look_at(found: Found, offer: Offer, verdicts: list[str | None], *, waits: bool) -> None:
        """Each text is in exactly one state, and it is the one that its agent was told."""
        judged = len(verdicts) == 1 and verdicts[0] is not None
        if judged + waits != 1:
            found.faults.append(f"not in exactly one place: {offer.call_id} {verdicts} {waits}")
            return
        verdict = str(verdicts[0]) if judged else ""
        state = "journal" if waits else "refused" if verdict in REFUSED else verdict
        found.states[state] += 1
        found.answered[offer.told] += 1
        fits = {"approved": state == "approve", "refused": state == "refused", "unjudged": True}
        if not fits[offer.told]:
            found.faults.append(f"told {offer.told}, but it is {state}: {offer.call_id}")

    def _look_for_twins(self, found: Found) -> None:
        twins = self._rows(
            "SELECT text_hash, count(*) FROM entry WHERE status IN ('pending', 'stored')"
            " GROUP BY project_id, text_hash HAVING count(*) > 1"
        )
        offered = {
            offer.call_id for offer in self._offers
        }  # what was held is judged again in calls of the service's own
        everybodys = Counter(
            (row[4], row[3])
            for row in self._rows(COUNT_CALLS)
            if row[1] in offered and row[2] == "approve" and row[3] in self._shared
        )
        found.faults += [f"live twice: {row[0][:12]}" for row in twins]
        for (project, shared), count in everybodys.items():
            if count > 1:
                found.faults.append(f"approved {count} times in {project}: {self._history(shared)}")

    def _history(self, shared: str) -> list[Any]:
        """What became of a text, review by review and entry by entry."""
        reviews = self._rows(
            "SELECT text, tool_call_id, verdict, reviewer, fault, stored_at, entry_id FROM review ORDER BY id"
        )
        entries = self._rows("SELECT text, id, status, review_id, created_at, updated_at FROM entry ORDER BY id")
        return [tuple(row)[1:] for row in (*reviews, *entries) if row[0] == shared]

    def _look_at_money(self, found: Found, model: MessagesApi) -> None:
        ((spent, reserved),) = self._rows(
            "SELECT coalesce(sum(spent), 0), coalesce(sum(reserved), 0) FROM budget_window"
        )
        ((settled, open_),) = self._rows("SELECT coalesce(sum(settled), 0), count(open_until) FROM ledger")
        ((cost,),) = self._rows("SELECT coalesce(sum(cost_microdollars), 0) FROM review")
        if reserved or open_:
            found.faults.append(f"{reserved} micro-dollars in {open_} reservations outlive their calls")
        if not spent == settled == cost:
            found.faults.append(f"windows {spent}, ledger {settled} and reviews {cost} differ")
        if spent > model.usage_total_microdollars:
            found.faults.append("more was booked than was used")
