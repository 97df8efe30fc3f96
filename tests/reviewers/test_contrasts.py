"""A small word that turns what a text says makes it another text; its equals don't."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.reviewers import contrasts
from app.reviewers.offline import OfflineReviewer
from tests.reviewers.test_offline_pairs import called_same

FRAMES = {
    "en": "the cache of the importer {} the nightly run of it",
    "de": "der Cache und die Kasse {} das Lager dem Hafen",
    "es": "la caja del puerto {} las tarjetas una vez de la oficina",
    "fr": "le cache du serveur {} les factures est des ports",
    "pt": "os pagamentos do caixa {} uma nota dos portos na loja",
    "it": "il conto della cassa {} gli ordini della nave",
    "ru": "отчёты и счета {} на складе и в порту",
    "pl": "kasa jest na porcie {} to jest dla sklepu",
    "tr": "bir rapor ve kasa {} bu defter olarak",
    "nl": "de kassa en het archief {} een factuur van de haven",
}


def contrary_words() -> list[tuple[str, str, str]]:
    """Each two words of a language whose senses stand in one contrast, unless both go without saying."""
    return [
        (language, one, other)
        for language in FRAMES
        for senses in contrasts.CONTRASTS
        for a, b in product(senses, repeat=2)
        if a != b
        for one, other in product(contrasts.phrases(language, a), contrasts.phrases(language, b))
    ]


def equal_words() -> list[tuple[str, str, str]]:
    """Each two words of a language with one sense."""
    return [
        (language, one, other)
        for language in FRAMES
        for senses in contrasts.CONTRASTS
        for sense in senses
        for one, other in product(contrasts.phrases(language, sense), repeat=2)
    ]


@settings(max_examples=200, deadline=None)
@given(case=st.sampled_from(contrary_words()))
def test_a_word_in_the_place_of_its_contrary_turns_a_text(case: tuple[str, str, str]) -> None:
    language, *both = case
    one, other = (contrasts.senses(FRAMES[language].format(word)) for word in both)
    assert contrasts.turned(one, other)


@settings(max_examples=200, deadline=None)
@given(case=st.sampled_from(equal_words()))
def test_a_word_in_the_place_of_its_equal_turns_nothing(case: tuple[str, str, str]) -> None:
    language, *both = case
    one, other = (contrasts.senses(FRAMES[language].format(word)) for word in both)
    assert not contrasts.turned(one, other)


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=200))
def test_no_text_contradicts_itself(text: str) -> None:
    assert not contrasts.turned(contrasts.senses(text), contrasts.senses(text))


def test_reasons_and_duties_go_without_saying() -> None:
    stated = contrasts.senses("Clients must always retry with all keys, because the gateway drops the first call.")
    assert not contrasts.turned(stated, contrasts.senses("Clients retry keys: the gateway drops the first call."))


def test_what_must_not_be_may_not_be() -> None:
    assert not contrasts.turned(
        contrasts.senses("Clients may not retry a payment."), contrasts.senses("Clients must not retry a payment.")
    )


PAIRS = [
    ("Turn the cache on before the import starts, its file is large.", "on", "off"),
    ("Clients may retry a payment with the same idempotency key.", "may", "must"),
    ("Feature flags are read at start, since the file is small.", "since", "although"),
    ("Feature flags are read at start if the file is small.", "if", "because"),
    ("Exports always run on the replica, imports on the primary.", "always", "sometimes"),
    ("Only admins may see invoices of other ports in the portal.", "Only admins", "Admins"),
    ("Berth names are compared with case in the feed importer.", "with", "ignoring"),
    ("Kassen synchronisieren nur nachts mit der Zentrale.", "nur", "auch"),
    ("Die Kasse bucht nachts, weil die Bank offen ist.", "weil", "obwohl"),
    ("Los pagos solo se hacen en la caja del puerto.", "solo", "también"),
    ("Les quittances partent toujours avant minuit.", "toujours", "parfois"),
    ("Отчёты строятся только ночью на реплике.", "только", "также"),
    ("キャッシュは起動前に消す。設定ファイルは残す。", "起動前", "起動後"),
    ("缓存在启动之前清空，配置文件保留。", "之前", "之后"),
    ("导出必须在副本上运行，导入在主库上。", "必须", "可以"),
]


@pytest.fixture(scope="module")
def reviewer() -> OfflineReviewer:
    return OfflineReviewer()


@pytest.mark.parametrize(("stored", "word", "other"), PAIRS)
def test_a_small_word_that_turns_the_meaning_is_no_duplicate(
    reviewer: OfflineReviewer, stored: str, word: str, other: str
) -> None:
    edited = stored.replace(word, other, 1)
    assert edited != stored
    assert called_same(reviewer, stored, f"- {stored.rstrip('.')}")
    assert not called_same(reviewer, stored, edited)
    assert not called_same(reviewer, edited, stored)
