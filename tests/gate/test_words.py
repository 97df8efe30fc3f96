"""The floor of words: short fragments fall under it, sentences of any language do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.store_hygiene_gate import MINIMUM_WORDS, count_words, gate

SENTENCES = [
    "Never rename a column in one migration step, always in two.",
    "导出任务在本地午夜读取账本，因此所有截止时间都要换算成协调世界时。",
    "エクスポーターは現地時間の真夜中に元帳を読むため、締め時刻は必ず世界時に直すこと。",
    "빌드는 항상 잠금 파일로 해야 하며 그렇지 않으면 배포가 재현되지 않는다.",
    "ตัวส่งออกอ่านบัญชีตอนเที่ยงคืนตามเวลาท้องถิ่น จึงต้องแปลงเวลาเป็นเวลาสากลก่อนเสมอ",
    "ໂປຣແກຣມສົ່ງອອກອ່ານບັນຊີໃນເວລາທ່ຽງຄືນຂອງທ້ອງຖິ່ນ ຕ້ອງແປງເວລາກ່ອນສະເໝີ",
    "កម្មវិធីនាំចេញអានបញ្ជីនៅពាក់កណ្តាលអធ្រាត្រតាមម៉ោងក្នុងស្រុកជានិច្ច",
    "ထုတ်ယူသည့်ပရိုဂရမ်သည်ဒေသစံတော်ချိန်သန်းခေါင်တွင်စာရင်းကိုဖတ်သည်",
    "Прежде чем менять схему, надо остановить экспорт, иначе он читает старые столбцы.",
    "قبل تغيير المخطط يجب إيقاف التصدير وإلا فإنه يقرأ الأعمدة القديمة.",
    "स्कीमा बदलने से पहले निर्यात रोकें, नहीं तो वह पुराने कॉलम पढ़ता है।",
    "`readTimestamp` で日付が省かれた最初の入力は、再び「1日」とみなすように直した。",
]
FRAGMENTS = [
    "完成了",
    "テスト",
    "테스트",
    "ทดสอบ",
    "Test entry",
    "- [x] done",
    "✅ ✅ ✅ ✅ ✅ ✅ ✅ ✅ ✅",
    "— | — | — | — | — | — | — | —",
    "2026-04-02 10:33:12 UTC: 2 / 3 / 4 / 5 / 6 / 7",
    "Fixed 1, 2, 3, 4, 5, 6, 7, 8 and 9",
    "vitest 214/214 ✔ 12 34 56 78 90",
    "OK OK OK OK OK OK OK OK OK OK",
    "done. done. Done. DONE done done done done, done",
    "完成 完成 完成 完成 完成 完成 完成 完成 完成 完成",
]


@pytest.mark.parametrize("text", SENTENCES)
def test_ordinary_sentences_pass(text: str) -> None:
    assert gate(text) == []


@pytest.mark.parametrize("text", FRAGMENTS)
def test_fragments_do_not(text: str) -> None:
    assert "too_short" in gate(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("one two", 2),
        ("one,two;three", 3),
        ("src/billing/gateway.py", 1),
        ("https://example.org/a/b?c=d", 1),
        ("`getUserById()`", 1),
        ("- **Goal**: ship", 2),
        ("retry → wait → fail", 3),
        ("don't re-use it", 3),
        ("v1.2.3", 1),
        ("12 of 30 rows, 1.5 s", 3),
        ("数据库连接池", 3),
        ("用 uv 安装", 3),
        ("नमस्ते दुनिया", 2),
    ],
)
def test_what_counts_as_a_word(text: str, words: int) -> None:
    assert count_words(text) == words


def test_the_floor_is_eight() -> None:
    assert MINIMUM_WORDS == 8
    assert gate("one two three four five six seven") == ["too_short"]
    assert gate("one two three four five six seven eight") == []


def test_the_floor_may_be_raised() -> None:
    assert gate("one two three four five six seven eight", minimum_words=9) == ["too_short"]


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_never_has_fewer_words(text: str, more: str) -> None:
    assert count_words(f"{text} {more}") >= count_words(text)


@given(st.text(max_size=300))
def test_no_more_words_than_characters(text: str) -> None:
    assert 0 <= count_words(text) <= len(text)
