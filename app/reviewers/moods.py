"""Words by which a memory shows its kind, in the languages of memories: what it commands, weighs, finds.

One field alone says little; which there are, and with which the text begins and ends, says more. They are written as
`Lexicon` reads them.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from app.reviewers import clauses
from app.reviewers.lexicon import Lexicon, plain

FIELDS: dict[str, str] = {
    "must": """
        must should shall ought need needs needed required require requires mandatory always every each whenever only
        muss mussen mussten soll sollen sollte darf durfen immer stets jede* jeden jedes nur erst pflicht gehort gehoren
        debe deben deberia hay_que tiene_que tienen_que siempre cada solo obligatori* conviene
        doit doivent faut devrait toujours chaque seulement uniquement obligatoire* il_faut
        deve devono devem sempre ogni bisogna va vanno solo cada obrigatori* precisa tem_que
        moet moeten altijd elke alleen
        должен должна должны нужно надо следует обязательно всегда каждый кажд* только
        musi musza trzeba nalezy powinien powinna powinny zawsze kazd* tylko
        gerekir gerek lazim zorunda mutlaka daima daim her sadece yalnizca malidir melidir
        必ず 常に べき なければ だけ のみ 毎回 こと。 必须 务必 应该 总是 每次 一律 都要 只能 要先 先 반드시 항상
        해야 만 할 것
    """,
    "never": """
        never don't dont not_to mustn't shouldn't cannot can't avoid without forbidden nobody neither
        nie niemals nicht_mehr kein* verboten ohne keinesfalls
        nunca jamas no_se no_hay evita* sin prohibid* jamais ne_pas aucun* sans interdit* eviter
        mai nunca nao_se jamais non_si senza sem evita*
        nooit geen zonder niet_meer
        никогда нельзя не_надо без запрещ* избега*
        nigdy nie_wolno nie_nalezy bez zakaz* unika*
        asla hicbir yapma* olmadan yasak
        決して 禁止 ない。 せずに てはいけない ないこと 絶対に 不要 不得 不能 禁止 切勿 绝不 别 不许 不准 절대 말 것
        말고 금지 않는다 하지 말
    """,
    "order": """
        use keep run write put set check make add ask treat wrap pass pin call prefer test verify send store read start
        stop leave let give take log mark name return convert round sort validate update restart build deploy commit
        close open include exclude skip remove delete do be see look watch expect measure compare count bump rotate
        nutze verwende benutze lass* prufe* setze schreibe frage* fuhre nimm halte
        usa usar pon poner revisa revisar escribe escribir deja dejar pide pedir usad mantener guardar
        utiliser utilise utilisez mettre mets verifier verifie garder passer ecrire laisser demander prevoir
        usare usa mettere controllare lasciare scrivere usar deixar verificar manter
        gebruik controleer zet laat
        использ* проверя* пиши* ставь* ставить делай* храни* храним оставля* запускать
        uzywaj uzywac sprawdz* pisz* ustaw* trzymaj zostaw* uruchamiaj
        kullan* kontrol_et* yaz koy birak* calistir*
        使う すること 使用 用 请 先用 사용 쓴다 쓸 것
    """,
    "chose": """
        chose choose chosen choice decided decide decision picked pick opted settled favour favor favoured agreed
        selected went_with stick sticking stay stays staying keep_it kept we_keep accept accepted accepting trade-off
        tradeoff deliberately deliberate intentionally purpose adr rejected dropped discarded abandoned alternative
        alternatives considered gave_up
        entschied* entscheid* gewahlt bewusst absichtlich verworfen abgelehnt einigung geeinigt beschlossen
        beschluss bleiben bleibt verzicht* alternative* akzeptier* festgelegt
        decid* elegi* eleg* opta* descart* acordamos acordo escog* prefer* adrede proposito renunci* asumimos
        choisi* choix decid* retenu ecart* renonc* prefer* opte* assume* volontairement tranche
        scelt* scegli* deciso decis* scartat* rinunci* preferi* escolh* optamos optou decid* descartad*
        gekozen besloten keuze bewust
        решил* решен* выбра* выбор* отказ* предпоч* договор* осознанно сознательно остаемся остановил*
        wybra* wybor* zdecydow* decyzj* odrzuc* rezygn* postanowi* swiadomie zostajemy
        sectik secildi karar* tercih* vazgec* bilerek
        採用 選んだ 選択 決めた 決定 見送 却下 やめた 方針 あえて にした 选择 选了 决定 放弃 采用 改用 选用 定为 不用
        选定 선택 결정 채택 포기 하기로 택했 대신
    """,
    "over": """
        over instead rather vs versus than against alternative worth price cost costs cheaper simpler enough outweigh*
        overkill
        statt anstatt stattdessen lieber gegen als dafur preis
        lugar vez frente contra aunque mas_que en_vez a_cambio
        plutot lieu contre quitte au_lieu tant_pis
        invece anziche piuttosto contro em_vez ao_inves
        in_plaats liever
        вместо лучше чем против зато
        zamiast raczej niz wole kosztem
        yerine degil daha
        ではなく より の代わり よりも かわりに 而不是 而非 代替 比 不如 宁可 아니라 보다 대신
    """,
    "why": """
        because since so therefore hence reason reasons otherwise else as due
        weil denn sonst damit da deshalb grund deswegen
        porque pues ya_que asi por_eso motivo razon si_no
        car parce puisque sinon donc afin raison
        perche poiche altrimenti cosi quindi porque pois senao
        omdat want anders
        потому поскольку иначе так_как поэтому чтобы ведь причин*
        bo poniewaz inaczej dlatego gdyz zeby powod*
        cunku yoksa icin nedeniyle neden
        ため から ので 理由 さもないと 因为 否则 所以 由于 免得 原因 때문 아니면 므로 위해 니까
    """,
    "we": """
        we our us we're we've ours
        wir unser* uns
        nosotros nuestr* nous notre nos
        noi nostr* nos nosso* nossa*
        wij we ons onze
        мы нас наш* нам
        my nasz* nas nam
        biz bizim bize
        私たち うち 自社 当社 我们 咱们 우리 저희
    """,
    "odd": """
        silently silent unexpectedly surprisingly although though despite even undocumented bug buggy workaround quirk
        gotcha pitfall trap ignores ignored swallows swallowed drops loses lies claims pretends still anyway
        without_error
        no_error without_warning no_warning nothing_happens misleading wrongly unless
        stillschweigend still kommentarlos trotz obwohl obgleich ignoriert verschluckt verliert fehlermeldung
        seltsam* heimlich eigenart* falle fehlerfrei
        silenciosamente silencio aunque pese ignora traga pierde sin_error sin_avisar aviso raro trampa calla
        silencieusement silence malgre quoique bien_que ignore avale perd sans_erreur sans_prevenir piege meme
        silenzio benche nonostante ignora perde senza_errore senza_avviso errore silencio embora apesar sem_erro
        sem_avisar
        stilletjes ondanks negeert
        молча хотя несмотря игнорир* теря* без_ошибки баг* подводн* странн*
        cicho mimo choc ignoruje gubi bez_bledu blad pulapk*
        sessizce ragmen yok_say* hata hatasiz
        黙って エラーなし のに 無視 バグ 落とし穴 勝手に 注意 しても 静默 却 不报错 忽略 丢弃 坑 居然 竟然 即使
        不会报 조용히 무시 오류 없이 버그 함정 인데도 더라도
    """,
    "acts": """
        returns return gives sends ships reads treats counts caches resets restarts fails crashes throws hangs breaks
        accepts refuses rejects requires expects defaults default truncates rounds sorts converts strips adds removes
        overwrites rewrites closes opens blocks needs wants behaves stops starts kills closes emits reports
        liefert gibt sendet liest behandelt zahlt sturzt bricht wirft hangt braucht verlangt erwartet schneidet rundet
        uberschreibt schliesst standardmassig setzt
        devuelve envia lee trata cuenta falla rompe lanza exige espera corta redondea sobrescribe cierra defecto
        renvoie envoie lit traite compte plante casse exige attend tronque arrondit ecrase ferme defaut
        restituisce invia legge tratta conta fallisce lancia tronca arrotonda sovrascrive chiude predefinito devolve
        envia
        возвращает отправляет читает считает падает бросает требует ждет обрезает округляет умолчани* сбрасыва*
        zwraca wysyla czyta traktuje liczy rzuca wymaga oczekuje obcina zaokragla domyslnie zamyka
        dondurur gonderir okur sayar coker varsayilan keser
        返す 返し 読み 落ちる 止まる 既定 デフォルト 切り捨て 返回 发送 默认 崩溃 报错 截断 覆盖 会把 会在 会被 반환
        기본 멈춘 자른 덮어 된다
    """,
    "outside": """
        version versions docs documentation documented vendor library driver api sdk plugin browser android ios windows
        linux macos chrome firefox safari postgres postgresql sqlite mysql redis docker kubernetes npm python node java
        django rails react release releases upstream firmware
        bibliothek treiber hersteller dokumentation anbieter version
        libreria controlador proveedor documentacion bibliotheque pilote fournisseur documentation
        biblioteca fornitore fornecedor documentazione
        библиотек* драйвер* документац* верси* вендор*
        bibliotek* sterownik* dokumentacj* wersj* dostawc*
        surum* kutuphane* belge*
        バージョン ドキュメント ライブラリ 版本 文档 库 驱动 버전 문서 라이브러리
    """,
    "found": """
        measured found turned showed shows shown comes come came caused causes cause actually really real traced
        profiled
        profiling benchmark benchmarks median p50 p95 p99 average percent correlat* computed calculated derived lives
        stems source origin explains reason discovered learned proved proven confirmed experiment experiments sample
        evidence logs reveals revealed looks half third most bottleneck dominated because_of
        gemessen gefunden herausgestellt zeigt zeigte stammt stammen kommt kommen ursache tatsachlich eigentlich
        wirklich
        messung* schnitt mittel ergab liegt entsteht stellte_sich anteil
        medido medimos medicion* resulta resulto viene vienen causa realmente origen mediana muestra descubr* proviene
        mesure* trouve* vient viennent cause reellement origine mediane montre decouvert provient s'avere
        misurat* risulta viene causa davvero origine mediana mostra scopert* deriva medid* vem
        gemeten blijkt komt oorzaak
        измер* оказал* выяснил* приходит причин* действительно источник* медиан* показал* замер* берется на_самом_деле
        zmierz* okaza* pochodz* przyczyn* naprawde zrodl* median* pokaza* wynika
        olctuk olcum* cikti gelir geliyor neden* aslinda kaynak* ortalama gosterdi
        計測 測定 判明 原因 実は 中央値 由来 わかった 分かった 実測 測ると 调查 测量 实测 原因是 来自 其实 发现 查明
        中位 占 측정 확인 원인 사실 중앙값 밝혀 나온다 알게
    """,
    "now": """
        now currently present moment today yet next remaining remains left open blocked waits waiting waited pending
        progress phase stage so_far until done half missing stands ongoing underway live planned soon started finished
        complete rollout milestone sprint beta pilot
        jetzt derzeit aktuell momentan gerade noch nachste* offen blockiert wartet warten ausstehend phase bisher fertig
        fehlt fehlen lauft laufen stand zurzeit erledigt steht
        ahora actualmente momento todavia aun falta faltan pendiente* bloquead* espera fase siguiente curso listo hecho
        maintenant actuellement encore reste restent attente bloque* phase prochain* cours pret fini manque
        adesso attualmente ancora manca mancano attesa bloccat* fase prossim* corso pronto fermo agora falta pendente
        nu momenteel nog wacht
        сейчас пока еще осталось остается ждем ждет этап* фаз* следующ* готов* блокир* текущ* идет
        teraz obecnie jeszcze zostalo czeka* etap* faz* nastepn* gotow* brakuje trwa
        simdi su_anda henuz kaldi bekliyor asama* sirada hazir eksik devam
        現在 今 まだ 残り 待ち 段階 次は 進行 完了 未着手 途中 目前 现在 还 尚未 等待 剩下 下一步 阶段 进行中 待 已
        지금 현재 아직 남은 대기 단계 다음 진행 완료 중
    """,
    "event": """
        yesterday ago morning night week last_week monday tuesday wednesday thursday friday saturday sunday meeting
        fixed merged deployed rebuilt changed restarted happened incident outage migrated renamed removed added
        gestern woche montag dienstag mittwoch donnerstag freitag samstag sonntag behoben umgebaut geandert
        ayer semana lunes martes miercoles jueves viernes reunion arregl* cambi*
        hier semaine lundi mardi mercredi jeudi vendredi reunion corrige
        ieri settimana riunione ontem semana
        вчера недел* понедельник* вторник* сред* созвон* исправил*
        wczoraj tydzien tygodni* poniedzial* spotkani* napraw*
        dun gecen hafta toplanti duzelt*
        昨日 先週 会議 修正 昨天 上周 会议 修复 어제 지난주 회의 수정
    """,
    "when": """
        when if once after before until as_soon unless while during whenever on
        wenn sobald nachdem bevor bis falls bei
        cuando si despues antes hasta al
        quand si lorsque apres avant jusqu* des
        quando se dopo prima fino depois antes
        als wanneer nadat voordat
        когда если после перед до при
        gdy jesli po przed az kiedy przy
        -ince eger sonra once kadar
        とき 場合 後 前に まで したら すると 时 如果 之后 之前 直到 一旦 때 면 후 전에 까지
    """,
}
_CODE = re.compile(r"`[^`\n]*`")
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


@cache
def lexicon() -> Lexicon:
    """The fields, by their words."""
    return Lexicon(FIELDS)


def of(text: str) -> Iterator[str]:
    """The fields of a text, once for each word; those of its first and of its last clause; those that begin a clause.

    The first character says which of these it is: ``m``, ``n``, ``o``.
    """
    parts = clauses.split(text)
    for place, clause in enumerate(parts):
        said = plain(_CODE.sub(" codeword ", clause)).replace("’", "'")
        words: list[str] = _WORD.findall(said)
        fields = _fields(said, words)
        yield from ("m" + field for field in fields)
        if place == 0:
            yield from ("nF" + field for field in set(fields))
        if place == len(parts) - 1:
            yield from ("nL" + field for field in set(fields))
        where = "F" if place == 0 else "L" if place == len(parts) - 1 else "M"
        for field in lexicon().fields_of(words[0]) if words else ():
            yield "oS" + field
            yield f"o{where}{field}"
        if clause.lstrip("-*• ").startswith("`"):
            yield "ocode"


def _fields(said: str, words: list[str]) -> list[str]:
    known = lexicon()
    fields = [field for word in words for field in known.fields_of(word)]
    fields += [field for a, b in pairwise(words) for field in known.fields_of_two(a, b)]
    return fields + list(known.fields_within(said))
