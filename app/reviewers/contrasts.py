"""Small words that turn what a text says: on and off, may and must, if and because, only, sometimes, before and after.

They are a closed class. Each word has a sense, which it shares with its equals in its own and in other languages
(because, since, weil, porque), and each sense stands in one contrast with others (because, although, if, until). Two
texts are opposed if each has a sense of a contrast that the other lacks. Some senses turn a text all by themselves
(only, sometimes, off), so that the other text must have them too; the rest (because, must, always, on) go unsaid.
"""

import re
from collections import Counter

from app.words import words

LONGEST_PHRASE = 4
NOT_BEFORE, NOT_AFTER = 2, 4  # how many words away a negation turns "may" into "must not"

CONTRASTS = (
    ("because", "although", "if", "until", "unless"),
    ("only", "also"),
    ("must", "should", "may"),
    ("always", "mostly", "sometimes"),
    ("all", "most", "some"),
    ("before", "after"),
    ("on", "off"),
    ("in", "out"),
    ("up", "down"),
    ("over", "under"),
    ("at least", "at most"),
    ("with", "disregarding"),
    ("forwards", "reversed"),
)
FOCUS = frozenset({"only", "also"})
# Senses that turn a text by being there.
TURNING = frozenset({
    "although", "if", "until", "unless", "only", "also", "may", "mostly", "sometimes", "most", "some", "off", "out",
    "down", "at least", "at most", "disregarding", "reversed",
})  # fmt: skip

_OF = {sense: place for place, senses in enumerate(CONTRASTS) for sense in senses}

# By language: a few words that tell it, and the phrases of each sense; "" is for phrases that mean none of them.
_TELLING = {
    "en": "the a an is are be and of to in for it its with by from at as that this not",
    "de": "der die das den dem und ist ein eine im mit fur auf nicht wird werden von zu sind bei",
    "es": "el la los las un una es de que en y se para con del por al lo no",
    "fr": "le la les un une est des et du de que en pour dans au aux ne pas sur par sont",
    "pt": "o a os as um uma e de do da dos das no na que em para com nao por ao se",
    "it": "il lo la gli le un una e di del della dei che in per con non si nel al sono",
    "ru": "и в на не с по для что из к а то у от это при",
    "pl": "na nie do to jest sie dla po przez od ze",
    "tr": "ve bir bu icin ile da de degil olarak",
    "nl": "de het een en van is op te dat niet met voor zijn wordt worden er bij",
}
_SPACED: dict[str, dict[str, str]] = {
    "en": {
        "": "as well as|so that|if not|what if|may not|only if|out of the|as if|log in"
        "|in order to|all of|at all|up to date|up front|set up|sets up|made up|end up|ends up|clean up|back up|backs up"
        "|start up|look up|time out|times out|timed out|run out|runs out|roll out|rolled out|rolls out|turns out"
        "|carry out|figure out|opt in|from now on|so on|later on|based on|depends on|relies on|rely on|depend on",
        "because": "because|since|as|due to|owing to|for",
        "although": "although|though|even if|even though|despite|in spite of|notwithstanding|regardless|whether or not",
        "if": "if|when|whenever|once|in case|as soon as|provided|as long as|while",
        "until": "until|till|up to",
        "unless": "unless|except|except if|except when",
        "only": "only|solely|exclusively|alone|nothing but|none but",
        "also": "also|too|as well|additionally|even",
        "must": "must|shall|has to|have to|need to|needs to|required to",
        "should": "should|ought to|preferably",
        "may": "may|can|could|might|is allowed to|are allowed to|allowed to|free to|optionally",
        "always": "always|invariably|every time|at all times|constantly",
        "mostly": "mostly|usually|often|normally|typically|generally|frequently|most of the time|as a rule",
        "sometimes": "sometimes|occasionally|at times|now and then|rarely|seldom|once in a while",
        "all": "all|every|each|any",
        "most": "most",
        "some": "some|few|a few|several|certain",
        "before": "before|prior to|ahead of",
        "after": "after|following|afterwards",
        "on": "on|onto",
        "off": "off",
        "in": "in|into|inside|within",
        "out": "out|outside",
        "up": "up|upward|upwards",
        "down": "down|downward|downwards",
        "over": "over|above|more than|exceeding",
        "under": "under|below|less than|fewer than|beneath",
        "at least": "at least|no less than|no fewer than|minimum of|minimum",
        "at most": "at most|no more than|maximum of|maximum|max|at maximum|at the most",
        "with": "with|including|considering",
        "disregarding": "ignoring|disregarding|irrespective of|regardless of",
        "reversed": "reverse|reversed|inverse|inverted|opposite|backwards|the other way round|vice versa",
    },
    "de": {
        "": "nicht nur|je nach|nur wenn|und so weiter|so dass|immer wieder",
        "because": "weil|denn|da|aufgrund|wegen",
        "although": "obwohl|obgleich|trotz|trotzdem|auch wenn|selbst wenn|wenngleich|obschon",
        "if": "wenn|falls|sofern|sobald|solange|wahrend",
        "until": "bis",
        "unless": "ausser|es sei denn|ausgenommen",
        "only": "nur|ausschliesslich|bloss|lediglich|allein",
        "also": "auch|ebenfalls|sogar|ebenso",
        "must": "muss|mussen|musst",
        "should": "soll|sollen|sollte|sollten",
        "may": "darf|durfen|kann|konnen|konnte|konnten",
        "always": "immer|stets|jederzeit",
        "mostly": "meist|meistens|oft|haufig|gewohnlich|normalerweise|in der regel|ublicherweise",
        "sometimes": "manchmal|gelegentlich|ab und zu|selten|bisweilen",
        "all": "alle|aller|allen|jede|jeder|jedes|jeden|jedem|samtliche",
        "most": "die meisten|meisten",
        "some": "einige|manche|wenige|ein paar|einzelne",
        "before": "vor|bevor|ehe|vorher",
        "after": "nach|nachdem|nachher",
        "on": "an|ein|auf",
        "off": "aus|ab",
        "in": "in|im|innerhalb",
        "out": "ausserhalb|raus|hinaus",
        "up": "hoch|hinauf|rauf",
        "down": "runter|hinunter|herunter|hinab",
        "over": "uber|mehr als|oberhalb",
        "under": "unter|weniger als|unterhalb",
        "at least": "mindestens|wenigstens|zumindest",
        "at most": "hochstens|maximal|max",
        "with": "mit|samt",
        "disregarding": "ungeachtet|unabhangig von",
        "reversed": "umgekehrt|umgekehrte|umgekehrter|umgekehrten|ruckwarts|andersherum",
    },
    "es": {
        "": "no solo|para que|solo si|si no|a no ser que|por si|si mismo|si misma",
        "because": "porque|pues|ya que|puesto que|como|debido a",
        "although": "aunque|a pesar de|pese a|aun cuando|incluso si|aun si",
        "if": "si|cuando|en caso de|siempre que|mientras|en cuanto",
        "until": "hasta|hasta que",
        "unless": "salvo|excepto|salvo si|a menos que",
        "only": "solo|solamente|unicamente|exclusivamente",
        "also": "tambien|ademas|incluso",
        "must": "debe|deben|tiene que|tienen que|hay que",
        "should": "deberia|deberian|conviene",
        "may": "puede|pueden|podria|podrian",
        "always": "siempre",
        "mostly": "casi siempre|normalmente|a menudo|por lo general|generalmente|suele|suelen",
        "sometimes": "a veces|algunas veces|de vez en cuando|raras veces|ocasionalmente",
        "all": "todo|todos|toda|todas|cada|cualquier",
        "most": "la mayoria",
        "some": "algunos|algunas|unos pocos|ciertos|ciertas|varios|varias|pocos|pocas",
        "before": "antes|antes de|antes del",
        "after": "despues|tras|despues de|despues del",
        "off": "fuera de",
        "in": "dentro",
        "out": "fuera",
        "up": "arriba|hacia arriba",
        "down": "abajo|hacia abajo",
        "over": "sobre|encima|mas de",
        "under": "bajo|debajo|menos de",
        "at least": "al menos|como minimo|por lo menos",
        "at most": "como maximo|como mucho|a lo sumo",
        "with": "con",
        "disregarding": "sin importar|independientemente",
        "reversed": "inverso|inversa|al reves|contrario",
    },
    "fr": {
        "": "pas seulement|afin que|pour que|seulement si|sinon",
        "because": "car|parce que|parce qu|puisque|puisqu|comme|a cause de|en raison de",
        "although": "bien que|bien qu|quoique|malgre|meme si|en depit de",
        "if": "si|s|quand|lorsque|lorsqu|des que|en cas de|tant que",
        "until": "jusqu|jusque",
        "unless": "sauf|a moins|excepte|hormis",
        "only": "seulement|uniquement|seul|seule|seuls|seules|exclusivement",
        "also": "aussi|egalement|meme",
        "must": "doit|doivent|il faut|faut",
        "should": "devrait|devraient",
        "may": "peut|peuvent|pourrait|pourraient",
        "always": "toujours",
        "mostly": "souvent|d habitude|generalement|en general|la plupart du",
        "sometimes": "parfois|quelquefois|de temps en|rarement",
        "all": "tout|tous|toute|toutes|chaque",
        "most": "la plupart|la plupart des",
        "some": "certains|certaines|quelques|plusieurs",
        "before": "avant|avant de",
        "after": "apres",
        "on": "sur",
        "in": "dans|dedans",
        "out": "hors|dehors|en dehors",
        "up": "en haut|vers le haut",
        "down": "en bas|vers le bas",
        "over": "au dessus|plus de",
        "under": "sous|au dessous|en dessous|moins de",
        "at least": "au moins|au minimum",
        "at most": "au plus|au maximum",
        "with": "avec|y compris",
        "disregarding": "sans tenir compte|independamment",
        "reversed": "inverse|a rebours|a l envers|contraire",
    },
    "pt": {
        "": "nao so|para que|so se|se nao",
        "because": "porque|pois|ja que|porquanto|como|devido a",
        "although": "embora|apesar|mesmo se|mesmo que|ainda que",
        "if": "se|quando|caso|enquanto|assim que",
        "until": "ate|ate que",
        "unless": "salvo|exceto|a menos que|a nao ser",
        "only": "so|somente|apenas|unicamente",
        "also": "tambem|alem disso|ate mesmo",
        "must": "deve|devem|tem de|tem que",
        "should": "deveria|deveriam|convem",
        "may": "pode|podem|poderia|poderiam",
        "always": "sempre",
        "mostly": "quase sempre|geralmente|normalmente|muitas vezes|costuma|costumam",
        "sometimes": "as vezes|por vezes|de vez em|raramente",
        "all": "todo|todos|toda|todas|cada|qualquer",
        "most": "a maioria",
        "some": "alguns|algumas|certos|certas|poucos|poucas|varios|varias",
        "before": "antes",
        "after": "depois|apos",
        "in": "dentro",
        "out": "fora",
        "up": "para cima",
        "down": "para baixo",
        "over": "sobre|acima|mais de",
        "under": "sob|abaixo|menos de",
        "at least": "pelo menos|no minimo",
        "at most": "no maximo",
        "with": "com",
        "disregarding": "independentemente",
        "reversed": "inverso|inversa|ao contrario",
    },
    "it": {
        "": "non solo|solo se|se non",
        "because": "perche|poiche|siccome|dato che|visto che|in quanto|a causa",
        "although": "sebbene|benche|nonostante|anche se|malgrado",
        "if": "se|quando|qualora|appena|mentre|finche",
        "until": "fino|fino a|finche non",
        "unless": "tranne|salvo|eccetto|a meno che",
        "only": "solo|soltanto|solamente|unicamente|esclusivamente",
        "also": "anche|inoltre|perfino|pure",
        "must": "deve|devono|bisogna",
        "should": "dovrebbe|dovrebbero|conviene",
        "may": "puo|possono|potrebbe|potrebbero",
        "always": "sempre",
        "mostly": "spesso|di solito|normalmente|in genere|quasi sempre",
        "sometimes": "a volte|talvolta|qualche volta|raramente|ogni tanto",
        "all": "tutto|tutti|tutta|tutte|ogni|ciascun",
        "most": "la maggior parte|maggior parte",
        "some": "alcuni|alcune|qualche|certi|certe|pochi|poche",
        "before": "prima",
        "after": "dopo",
        "in": "dentro",
        "out": "fuori",
        "up": "in su|su",
        "down": "in giu|giu",
        "over": "sopra|piu di|oltre",
        "under": "sotto|meno di",
        "at least": "almeno|come minimo",
        "at most": "al massimo",
        "with": "con",
        "disregarding": "indipendentemente",
        "reversed": "inverso|inversa|al contrario",
    },
    "ru": {
        "": "не только|только если|так что|чтобы",
        "because": "потому что|так как|поскольку|ибо|из за|ведь",
        "although": "хотя|несмотря|даже если|хоть",
        "if": "если|когда|пока|как только|в случае|при",
        "until": "пока не|вплоть до",
        "unless": "кроме|если не|за исключением",
        "only": "только|лишь|исключительно",
        "also": "также|тоже|даже",
        "must": "должен|должна|должно|должны|надо|нужно|обязан|обязаны|необходимо",
        "should": "следует|стоит|желательно",
        "may": "может|могут|можно|разрешено|допускается",
        "always": "всегда|постоянно",
        "mostly": "обычно|часто|как правило|чаще всего",
        "sometimes": "иногда|порой|редко|изредка",
        "all": "все|всех|всем|каждый|каждая|каждое|каждого|любой",
        "most": "большинство",
        "some": "некоторые|некоторых|несколько|немногие",
        "before": "до|перед|прежде|раньше",
        "after": "после|затем",
        "in": "внутри",
        "out": "вне|снаружи",
        "up": "вверх",
        "down": "вниз",
        "over": "над|выше|больше|более",
        "under": "под|ниже|меньше|менее",
        "at least": "не менее|не меньше|минимум|по меньшей мере|хотя бы",
        "at most": "не более|не больше|максимум",
        "disregarding": "независимо|не учитывая",
        "reversed": "обратном|обратный|наоборот",
    },
    "pl": {
        "": "nie tylko|tylko jesli|zeby",
        "because": "bo|poniewaz|gdyz|dlatego ze|z powodu|bowiem",
        "although": "choc|chociaz|mimo|pomimo|nawet jesli|nawet gdy",
        "if": "jesli|jezeli|gdy|kiedy|dopoki|skoro|w razie",
        "until": "dopoki nie|az do",
        "unless": "chyba ze|oprocz|z wyjatkiem",
        "only": "tylko|wylacznie|jedynie",
        "also": "tez|takze|rowniez|nawet",
        "must": "musi|musza|trzeba|nalezy",
        "should": "powinien|powinna|powinno|powinny|warto",
        "may": "moze|moga|mozna|wolno",
        "always": "zawsze",
        "mostly": "zwykle|czesto|zazwyczaj|przewaznie",
        "sometimes": "czasem|czasami|niekiedy|rzadko",
        "all": "wszystkie|wszystkich|wszyscy|kazdy|kazda|kazde|kazdego|kazdym",
        "most": "wiekszosc",
        "some": "niektore|niektorzy|kilka|pewne|nieliczne",
        "before": "przed|zanim|wczesniej",
        "after": "po|potem",
        "in": "wewnatrz",
        "out": "poza|na zewnatrz",
        "up": "w gore",
        "down": "w dol",
        "over": "nad|powyzej|ponad|wiecej",
        "under": "pod|ponizej|mniej",
        "at least": "co najmniej|przynajmniej|minimum",
        "at most": "co najwyzej|najwyzej|maksymalnie",
        "disregarding": "niezaleznie|bez wzgledu",
        "reversed": "odwrotnie|odwrotnej|na odwrot",
    },
    "tr": {
        "because": "cunku|nedeniyle|yuzunden|dolayi",
        "although": "ragmen|karsin|olsa bile|bile",
        "if": "eger|ise|sa|halinde|durumunda",
        "until": "kadar|dek",
        "unless": "haric|disinda|olmadikca",
        "only": "yalnizca|yalniz|sadece|ancak",
        "also": "ayrica|dahi",
        "must": "gerekir|zorunda|sart|zorunlu|lazim",
        "may": "edebilir|olabilir|yapabilir",
        "always": "her zaman|daima|hep|surekli",
        "mostly": "genellikle|cogunlukla|sik sik|cogu zaman",
        "sometimes": "bazen|ara sira|nadiren|zaman zaman",
        "all": "butun|tum|her|hepsi",
        "most": "cogu",
        "some": "bazi|kimi|birkac",
        "before": "once|oncesinde|onceden",
        "after": "sonra|sonrasinda",
        "in": "icinde|iceride",
        "out": "disarida",
        "over": "ustunde|uzerinde|fazla",
        "under": "altinda|az",
        "at least": "en az|asgari",
        "at most": "en fazla|azami|en cok",
    },
    "nl": {
        "": "niet alleen|alleen als|zodat",
        "because": "omdat|want|doordat|wegens",
        "although": "hoewel|ondanks|ook al|zelfs als",
        "if": "als|wanneer|indien|zodra|zolang|terwijl",
        "until": "tot|totdat",
        "unless": "tenzij|behalve",
        "only": "alleen|slechts|enkel|uitsluitend",
        "also": "ook|eveneens|zelfs",
        "must": "moet|moeten",
        "should": "zou moeten|hoort|horen",
        "may": "mag|mogen|kan|kunnen",
        "always": "altijd|steeds",
        "mostly": "meestal|vaak|doorgaans|gewoonlijk",
        "sometimes": "soms|af en toe|zelden",
        "all": "alle|elke|elk|iedere|ieder",
        "most": "de meeste|meeste",
        "some": "sommige|enkele|enige",
        "before": "voor|voordat",
        "after": "na|nadat",
        "on": "aan|op",
        "off": "uit|af",
        "in": "in|binnen",
        "out": "buiten",
        "up": "omhoog",
        "down": "omlaag|naar beneden",
        "over": "boven|meer dan",
        "under": "onder|minder dan",
        "at least": "minstens|ten minste|minimaal",
        "at most": "hoogstens|ten hoogste|maximaal",
        "with": "met",
        "disregarding": "ongeacht",
    },
}
# Where words are not separated, or endings hang on them; the first that fits at a place is taken.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DENSE_SENSES = {
    "": (
        "前端|[后後]端|[后後]台|前台|前[缀綴]|[后後][缀綴]|最[后後]|午[前後]|今後|[前后後]者|目前|前提|前回"
        "|不只是|不仅|だけでなく|뿐만|不能|不可|不得|できない|できません|てはならない|てはいけない|수 없"
    ),
    "although": (
        "にもかかわらず|けれども|けれど|虽然|雖然|尽管|儘管|即使|即便|哪怕|더라도|지만|에도 불구|ても(?![よい良])"
    ),
    "unless": "除非|除了|以外は|を除[きい]|제외",
    "until": "まで(?:は)?(?=[、。\\w])|直到|為止|为止|까지",
    "because": "ため(?!に)|ので|から(?=[、。])|因为|因為|由于|由於|때문|므로|니까",
    "if": (
        "如果|若是|要是|只要|一旦|场合|場合|(?<![てで])もし|とき"
        "|時は|(?:하면|되면|으면|할 때|경우)|たら|なら(?!ない|ぬ)"
    ),
    "at least": "至少|最低でも|少なくとも|以上|최소|적어도|이상",
    "at most": "至多|最多|最大でも|多くとも|以下|以内|최대|이하",
    "only": "だけ|のみ|しか|仅|只(?![要是])|僅|唯一|만(?=[\\s을이 ])|오직|뿐",
    "also": "也|還|还(?!原)|또한|도 함께|にも|でも(?=[^、])|も(?=[使見行す])",
    "before": "前|전에|기 전",
    "after": "[后後]|あと[にで]|후에|한 뒤|다음에",
    "mostly": "通常|往往|经常|大抵|たいてい|普段|よく|대개|보통|자주",
    "sometimes": "有时|有時|偶尔|時々|ときどき|たまに|가끔|때때로|간혹",
    "always": "总是|總是|始终|一直|每次|常に|いつも|必ず|항상|언제나|늘",
    "most": "大多数|大部分|多数|ほとんど|대부분",
    "some": "有些|某些|一部の?|일부|몇몇",
    "all": "所有|全部|都|すべて|全て|全部|모든|전부",
    "should": "应该|應該|应当|べき|望ましい|하는 것이 좋",
    "must": "必须|必須|なければならない|해야|하여야|必要",
    "may": "可以|可能|能够|能夠|允许|てもよい|てよい|できる|てもいい|수 있|해도 (?:된|좋)",
    "out": "之外|外部|外に|외부",
    "in": "之内|内部|内に|내부",
    "disregarding": "不管|无论|無論|不论|関係なく|상관없이",
}
_DENSE = re.compile("|".join(f"({pattern})" for pattern in _DENSE_SENSES.values()))
_IN_ORDER = tuple(_DENSE_SENSES)
_NOT = frozenset(words("not t never no nicht nie kein keine keinen keiner ne pas nao non не niet geen degil"))


def _folded(lexicon: dict[str, str]) -> dict[str, str]:
    return {" ".join(words(phrase)): sense for sense, line in lexicon.items() for phrase in line.split("|")}


_LEXICONS = {language: _folded(lexicon) for language, lexicon in _SPACED.items()}
_MARKERS = {language: frozenset(line.split()) for language, line in _TELLING.items()}


def phrases(language: str, sense: str) -> list[str]:
    """The words of a language that have a sense, folded in case and accents."""
    return [phrase for phrase, found in _LEXICONS[language].items() if found == sense]


def said(text: str) -> list[tuple[str, str]]:
    """The small words and phrases of a text in order, folded, each with its sense."""
    told = words(text)
    lexicon = _LEXICONS[_language(told)]
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(told):
        for length in range(LONGEST_PHRASE, 0, -1):
            phrase = " ".join(told[place : place + length])
            if phrase in lexicon:
                around = told[max(0, place - NOT_BEFORE) : place + length + NOT_AFTER]
                if lexicon[phrase] != "may" or _NOT.isdisjoint(around):
                    found.append((phrase, lexicon[phrase]))
                place += length
                break
        else:
            place += 1
    if _UNSPACED.search(text):
        found += [(match.group(), _IN_ORDER[match.lastindex - 1]) for match in _DENSE.finditer(text) if match.lastindex]
    return [(phrase, sense) for phrase, sense in found if sense]


def senses(text: str) -> Counter[str]:
    """How often a text says each sense."""
    return Counter(sense for _, sense in said(text))


def opposed(one: Counter[str], other: Counter[str]) -> bool:
    """Whether each says more of a sense than the other does, in one contrast: "if" and "because", "may" and "must"."""
    more = other - one
    return any(not more.keys().isdisjoint(CONTRASTS[_OF[sense]]) for sense in one - other)


def turned(one: Counter[str], other: Counter[str]) -> bool:
    """Whether they are opposed, or one has a turning sense that the other lacks: "only" and nothing."""
    return not TURNING.isdisjoint(one.keys() ^ other.keys()) or opposed(one, other)


def _language(told: list[str]) -> str:
    different = frozenset(told)
    if any("а" <= word[0] <= "я" for word in different):
        return "ru"
    return max(_MARKERS, key=lambda language: len(different & _MARKERS[language]))
