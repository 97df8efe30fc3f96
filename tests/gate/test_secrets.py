"""Secrets are recognised by their shape, placeholders and innocent look-alikes are not."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import gate as service
from app.schemas.vocabulary import Reason
from hooks.store_hygiene_gate import find_secrets, gate, redact
from tests.support.canaries import HEX, Maker, canaries, embedded, spoken

SURROUNDINGS = ["{}", "The deploy job reads {} from its environment.", "- `{}`", "（{}）", "key={}\nnext line", '"{}",']
INNOCENT = [
    "commit 3fa9c1d2b4e5f60718293a4b5c6d7e8f90123456 broke it",
    f"sha256: {Maker(3).draw(64, HEX)}",
    "request 550e8400-e29b-41d4-a716-446655440000 timed out",
    "token: 550e8400-e29b-41d4-a716-446655440000",
    f"data:image/png;base64,{Maker(4).draw(200)}",
    f"integrity sha512-{Maker(5).draw(86)}==",
    "token: <token>",
    "TOKEN=${TOKEN}",
    "password: xxxxxxxxxxxx",
    "password: ****************",
    "api_key = 'your-api-key-here1'",
    "AKIAIOSFODNN7EXAMPLE",
    "postgres://user:pass@localhost/orders",
    "postgres://postgres:postgres@localhost:5432/orders",
    "https://$USER:$TOKEN@git.example.org",
    "http://localhost:8080/@scope/package",
    "the token is read from process.env.GITHUB_TOKEN2",
    "password: getPassword('db1')",
    "src/auth/token2_store.py: token handling",
    "secret: projects/123/secrets/db-pass/versions/2",
    "secret_key: config/secrets/app2.key",
    "token TTL: 3600s, TOKEN_TTL=15min30s",
    "The password is bcrypt-hashed with cost 12",
    "ASIA-PACIFIC-REGION-1 is the default region",
    "sk-learn-pipeline-for-feature-union-2",
    "risk-assessment-framework-for-2024-q1-data",
    "the disk-usage-monitor-of-host-17-alerts",
    "-----BEGIN RSA PRIVATE KEY----- lines are refused by the pre-commit hook of this repository.",
    "Bearer tokens are validated in the middleware",
    "JWT_SECRET must have at least 32 characters; token=HS256/RS256",
    "Passwords: Argon2id with 64 MB of memory",
    "Secrets: k8s/base/secrets.enc.yaml",
    "The token is base64url-encoded",
    "token: base64url-encoded",
    "i18n tokens: src/i18n/en.json",
    "token: op://infra/github/k3s-deployer/token",
    "The secret is arn:aws:secretsmanager:eu-central-1:112233445566:secret:db-a1B2c3",
    f"token: sha256:{Maker(6).draw(64, HEX)}",
    f"The token job pins `alpine:3.19@sha256:{Maker(7).draw(64, HEX)}`",
    f"docker://alpine:3.19@sha256:{Maker(7).draw(64, HEX)}",
    "Basic k8s-network-policies",
    "Basic authentication2 of the registry",
    "Authorization: Basic dXNlcjpwYXNzd29yZA==",
    "https://x-access-token:GITHUB_TOKEN@git.example.org/acme/app.git",
    "postgres://app:DB_PASSWORD@db/orders",
    "curl -u CLIENT_ID:CLIENT_SECRET https://id.example.org/token",
    "postgres://username:mypassword@localhost/orders",
    "redis://default:my_redis_password@localhost",
    "password: $DB_PASS2x",
    "password: {db_pass2x}",
    "password: getPassword2FromDb3('x')",
    "secret = vault.read2(path1",
    "NotificationSubscription1.Handle.ConversationParticipantsReader",
    f"the cache stores it under key-{Maker(8).draw(32, HEX)}",
    "mysql2 -production is no option of the client",
    "mysql -uroot -proot",
    "docker login -u ci -p $REGISTRY_TOKEN",
    "Tokens come from the OAuth2AuthorizationCodeFlow of the gateway",
    "TOKEN_ID=550e8400-e29b-41d4-a716-446655440000",
    "a task-queue with multi-user mode and a key-value store at /api/webhooks/",
]


@pytest.mark.parametrize("surroundings", SURROUNDINGS)
@pytest.mark.parametrize("kind", canaries())
def test_a_secret_is_found_wherever_it_stands_and_redacted_whole(kind: str, surroundings: str) -> None:
    secret = canaries()[kind]
    text = surroundings.format(secret)

    [(start, end, _)] = find_secrets(text)

    assert secret.startswith(text[start:end])
    assert len(secret) - (end - start) <= 1
    assert text[start:end] not in redact(text)


@pytest.mark.parametrize("kind", embedded())
def test_a_secret_that_its_surroundings_give_away_is_found(kind: str) -> None:
    text, secret = embedded()[kind]

    [(start, end, _)] = find_secrets(text)

    assert text[start:end] == secret
    assert secret not in redact(text)


@pytest.mark.parametrize("way", spoken(""))
def test_a_password_that_is_told_in_prose_is_found(way: str) -> None:
    secret = "Xk9q" + "2zLm7Pqr"
    text = spoken(secret)[way]

    assert [text[start:end] for start, end, _ in find_secrets(text)] == [secret]


@given(
    st.text("abcdefghkmnpqrstuvwxyzABCDEFGHKLMNPQRSTUVWXYZ", min_size=5, max_size=20), st.sampled_from([*spoken("")])
)
def test_words_without_digits_are_no_passwords_in_prose(word: str, way: str) -> None:
    assert find_secrets(spoken(word)[way]) == []


@pytest.mark.parametrize(
    "value", ["Xk9(q2z)Lm", "Xk9q2z(Lm7", "$Xk9q2zLm", "{Xk9q2zLm7Pqr}", "Xk9{q2}zLm7", "q2(Xk9z)Lm{7}"]
)
def test_brackets_and_dollars_make_no_reference_of_a_password(value: str) -> None:
    assert find_secrets(f"password = {value}") != []


@pytest.mark.parametrize("end", [".", ",", ")", ").", "]:", "*", "|"])
def test_what_ends_the_sentence_is_no_part_of_the_secret(end: str) -> None:
    assert redact(f"(password: Xk9q(2z)Lm{end}") == f"(password: [redacted assigned_secret]{end}"


@pytest.mark.parametrize("word", ["mastodo", "sinsert", "pasample", "zyour"])
def test_a_word_for_placeholders_inside_another_word_makes_none(word: str) -> None:
    assert find_secrets(f"password = {word}7Kq2z") != []


def test_what_is_far_from_any_word_for_credentials_is_none() -> None:
    assert (
        find_secrets(f"Passwords expire. {'The list has a row for each of them. ' * 4} Row Xk9q2zLm7Pqr is odd.") == []
    )


@pytest.mark.parametrize("text", INNOCENT)
def test_the_service_agrees_on_look_alikes(text: str) -> None:
    assert Reason.SECRET not in service.check(text)
    assert service.redact(text) == text


@pytest.mark.parametrize("kind", canaries())
def test_the_service_redacts_what_the_hook_redacts(kind: str) -> None:
    text = f"It reads {canaries()[kind]} from a file."
    assert service.redact(text) == redact(text)


def test_the_service_redacts_further_kinds_where_they_stand() -> None:
    account = "AC" + Maker(9).draw(32, HEX)

    assert Reason.SECRET in service.check(f"AC is short for account: {account}")
    assert service.redact(f"AC is short for account: {account}, {account}") == (
        "AC is short for account: [secret], [secret]"
    )


@pytest.mark.parametrize("text", INNOCENT)
def test_look_alikes_and_placeholders_are_no_secrets(text: str) -> None:
    assert find_secrets(text) == []
    assert redact(text) == text


def test_several_secrets_are_found_in_order() -> None:
    first, second = canaries()["npm"], canaries()["GitLab"]

    found = find_secrets(f"first {first}, then {second}")

    assert [kind for _, _, kind in found] == ["npm_token", "gitlab_token"]


def test_the_gate_refuses_a_secret_before_anything_else() -> None:
    assert gate(f"PR merged {canaries()['npm']}") == ["secret", "session_summary", "too_short"]


@given(st.lists(st.one_of(st.text(max_size=20), st.sampled_from([*canaries(7).values()])), max_size=6))
def test_nothing_is_left_to_find_after_redaction(parts: list[str]) -> None:
    assert find_secrets(redact(" ".join(parts))) == []


@given(st.text(max_size=400))
def test_spans_lie_in_the_text_and_do_not_overlap(text: str) -> None:
    spans = find_secrets(text)
    assert all(0 <= start < end <= len(text) for start, end, _ in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize(
    "unit",
    [
        "ghp_",
        "password=",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "eyJa.",
        "curl -u a:",
        "a" * 60 + "..",
        "sk-1",
        "pass a1B2c3D4e5F6 ",
        "a1B2c3D4e5F6",
    ],
)
def test_hostile_texts_take_no_long_time(unit: str) -> None:
    started = time.monotonic()
    find_secrets(unit * (200_000 // len(unit)))
    assert time.monotonic() - started < 5
