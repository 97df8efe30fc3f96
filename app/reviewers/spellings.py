"""Words that are spelt in several ways or say nothing by themselves, in the languages that memories are written in."""

import re

# Words whose presence changes nothing about what a text says; negations, conditions and most prepositions are none.
FILLERS = frozenset(
    word
    for line in (
        "a an the is are be been being am has have do does will so very really just also please",
        "too as well then and that this these those it its there here which who whom whose by of to in on at for with",
        "thus hence therefore because since s re ve ll d always must should shall has we us our you your i they them",
        "der die das den dem des ein eine einen einem einer eines ist sind wird werden und auch so nur noch",
        "es sie wir uns unser im am zum zur von vom zu in an auf fur mit da weil denn denen dass muss soll gar",
        "el la los las lo un una unos unas es son ser y e tambien muy que de del al a en por para con se su sus",
        "siempre ya pues porque como le les nos nuestro hay",
        "le l d un une des du au aux est sont et aussi tres qui que de a en dans par pour avec se sa son ses ce cette",
        "toujours on nous il elle ils elles car parce qu y deja bien",
        "o os as um uma e tambem muito da do dos das no na nos nas ao em por para com se seu sua porque sempre",
        "il lo gli i uno di del della dei delle al alla da dal nel nella in con per su si e ed anche che perche sono",
        "и в на с к по у из от за о а но же бы то это тот та те этот эта как что который которая которую которые есть",
        "так также сам потому всегда",
        "i w z na do o a to jest sa sie ze bo gdyz jako tak tez zawsze",
        "ve bir bu o da de ki icin ile olarak her zaman cunku",
    )
    for word in line.split()
)
# What templates write round a text, at the beginning of a line or before a colon.
TEMPLATE = re.compile(
    r"(?:^|(?<=[\n.!?;:•*\]—–-]))[\s\W]*(?:"
    r"what|why|where|learned|learnt|lesson|lessons|note(?: to self)?|notes|nb|fyi|tl;?dr|reminder|remember|caution|"
    r"warning|attention|heads[- ]up|important|tip|hint|info|fact|facts|finding|gotcha|decision|decided|choice|rule|"
    r"rules|discovery|quirk|state|status|current status|now|next|goal|reason|because|context|background|title|summary|"
    r"memory|topic|"
    r"entscheidung|grund|regel|notiz|hinweis|achtung|merke|stand|warum|was|gelernt|wichtig|"
    r"decisi[oó]n|motivo|raz[oó]n|regla|nota|ojo|estado|aviso|importante|por qu[eé]|qu[eé]|aprendido|"
    r"d[eé]cision|raison|r[eè]gle|note|attention|[eé]tat|pourquoi|quoi|appris|important|"
    r"decis[aã]o|regra|motivo|estado|porqu[eê]|decisione|regola|stato|perch[eé]|attenzione|"
    r"решение|правило|причина|почему|что|важно|заметка|состояние|статус|"
    r"decyzja|pow[oó]d|zasada|uwaga|dlaczego|stan|karar|kural|neden|not|durum|dikkat"
    r")\b[\s*_]*(?=[\]):—–=]|\s[-–—]\s)",
    re.IGNORECASE,
)
UNSPACED_TEMPLATE = re.compile(
    r"(?:^|(?<=[\n。【\[]))[\s\W]*(?:決定|理由|ルール|注意|メモ|現状|状態|重要|なぜ|何|規則|规则|决定|原因|注意|现状|状态|"
    r"教训|备注|为什么|结论|결정|이유|규칙|주의|상태|메모|중요)\s*(?=[\]】:：)—-])"
)
# Words after which another thing is said of, so that a negation before them says nothing of it.
CONJUNCTIONS = frozenset(
    {"and", "or", "und", "oder", "y", "e", "o", "et", "ou", "i", "lub", "и", "или", "ve", "en", "of"}
)
# Adverbs that may stand before or after what they say something of.
FLOATING = frozenset(
    word
    for line in (
        "already again usually often sometimes mostly currently twice later",
        "schon bereits wieder oft meist ya otra veces menudo deja souvent encore gia spesso",
        "уже опять часто juz znow czesto zaten yine",
    )
    for word in line.split()
)
# What stands before a word and turns it into its opposite: unpaid, immutable, désactivé, desactivado, незакрытый.
REVERSING = ("un", "in", "im", "ir", "il", "non", "dis", "de", "des", "mis", "mal", "a", "не")
ABBREVIATIONS = {
    short: long
    for line in (
        "database db dbs", "repository repo repos", "configuration config configs cfg conf", "environment env envs",
        "production prod", "development dev", "staging stg", "kubernetes k8s", "postgresql postgres pg psql",
        "javascript js", "typescript ts", "directory dir dirs folder folders", "documentation docs doc",
        "message msg msgs", "package pkg pkgs", "request req reqs", "response resp", "parameter param params",
        "argument arg args", "variable var vars", "reference ref refs", "application app apps",
        "administrator admin admins", "authentication auth", "credential creds cred", "certificate cert certs",
        "statistic stat stats", "maximum max",
        "about approx approximately circa ca roughly around etwa",
        "information info", "temporary temp tmp", "transaction tx txn", "connection conn", "identifier id ids",
        "python py", "example eg", "number nr num", "percent percentage pct", "image img imgs",
        "command cmd cmds", "context ctx", "value val vals", "error err errs",
        "dependency dep deps", "library lib libs",
        "people folks", "instead rather", "each every per", "during while",
        "whole entire entirely wholly", "otherwise else", "someone somebody", "everyone everybody", "until till",
        "start starts started starting begin begins began begun beginning", "forever permanently",
        "remove removes removed removing delete deletes deleted deleting", "several multiple",
        "show shows showed shown showing display displays displayed displaying", "big large", "fast quick quickly",
        "use uses used using utilise utilises utilize utilizes employ employs", "enough sufficient", "via through",
        "need needs needed require requires required", "allow allows allowed permit permits permitted",
        "choose chooses chose chosen pick picks picked select selects selected", "although though",
        "keep keeps kept keeping retain retains retained", "write writes wrote written writing", "run ran running runs",
        "lose loses lost losing", "break breaks broke broken breaking", "send sends sent sending",
        "build builds built building", "take takes took taken", "get gets got", "make makes made making",
        "find finds found finding", "hold holds held holding", "give gives gave given", "come comes came coming",
        "first 1st erste ersten erster", "third 3rd", "erlaubt zulassig",
        "verwenden nutzen benutzen verwendet nutzt benutzt",
        "average avg", "pixel px pixels", "before beforehand", "character char chars", "second sec",
        "occur happen", "single sole", "wrong incorrect", "shut close", "purchase buy", "silent quiet",
    )
    for long, *shorts in (line.split(),)
    for short in shorts
}  # fmt: skip
AMERICAN = tuple(
    (re.compile(british), american)
    for british, american in (
        (r"is(?=(?:e|es|ed|er|ers|ing|ation|ations|able)$)", "iz"),
        (r"ys(?=(?:e|es|ed|er|ers|ing)$)", "yz"),
        (r"(?<=[a-z]{2})our(?=s|ed|ing|ite|ites|able|$)", "or"),
        (r"(?<=[bcdfghklmnpstv])re(?=s$|$)", "er"),
        (r"ll(?=(?:ed|ing|er|ers)$)", "l"),
        (r"ence$", "ense"),
        (r"ogue(?=s?$)", "og"),
        (r"mme(?=s?$)", "m"),
        (r"grey", "gray"),
        (r"disc(?=s?$)", "disk"),
        (r"(?<=ar)tef", "tif"),
    )
)
ENDINGS = (
    "ations", "ation", "ments", "ment", "ings", "ing", "ions", "ion", "ally", "ies", "ied", "ers", "es", "ed", "er",
    "ly", "al", "en", "em", "e", "s", "n", "y",
)  # fmt: skip
_SPELT = (
    "zero cero",
    "once einmal 1x",
    "two both twice zwei zwo beide beiden dos deux dois duas два две dwa dwie iki",
    "three thrice drei tres trois tre três три trzy uc",
    "four vier cuatro quatre quattro quatro четыре cztery dort",
    "five funf cinco cinq cinque пять piec bes",
    "six sechs seis шесть szesc altı",
    "seven sieben siete sept sette sete семь siedem yedi",
    "eight acht ocho huit otto oito восемь osiem sekiz",
    "nine neun nueve neuf nove девять dziewiec dokuz",
    "ten zehn diez dix dieci dez десять dziesiec",
    "eleven elf onze undici",
    "twelve zwolf doce douze dodici doze двенадцать",
    "thirteen dreizehn trece treize",
    "fourteen vierzehn catorce quatorze",
    "fifteen funfzehn quince quinze",
    "sixteen sechzehn dieciseis seize",
    "seventeen siebzehn diecisiete",
    "eighteen achtzehn dieciocho",
    "nineteen neunzehn diecinueve",
    "twenty zwanzig veinte vingt venti vinte двадцать",
)
_TENS = (
    "thirty dreissig treinta trente trenta trinta тридцать",
    "forty vierzig cuarenta quarante quaranta quarenta сорок",
    "fifty funfzig cincuenta cinquante cinquanta cinquenta",
    "sixty sechzig sesenta soixante sessanta sessenta",
    "seventy siebzig setenta settanta",
    "eighty achtzig ochenta ottanta oitenta",
    "ninety neunzig noventa novanta",
    "hundred hundert cien cent cento cem сто",
)
NUMERALS = (
    {word: str(number) for number, line in enumerate(_SPELT) for word in line.split()}
    | {word: str(10 * place) for place, line in enumerate(_TENS, start=3) for word in line.split()}
    | {"thousand": "1000", "tausend": "1000", "mil": "1000", "mille": "1000", "million": "1000000"}
)
# Units of scripts without spaces, as they are written elsewhere.
UNSPACED_UNITS = {
    "小时": "h",
    "小時": "h",
    "時間": "h",
    "시간": "h",
    "分钟": "min",
    "分鐘": "min",
    "分間": "min",
    "秒": "s",
    "초": "s",
    "天": "days",
}
ONE = frozenset({"one", "uno"})
_FACTORS: dict[str, dict[str, float]] = {
    "second": {
        "ms msec millisecond milliseconds millisekunden": 1e-3,
        "s sec secs second seconds sekunde sekunden segundos secondes secondi секунд секунды sekund saniye": 1,
        "min mins minute minutes minuten minutos minuti минут minut dakika": 60,
        "h hr hrs hour hours stunde stunden hora horas heure heures ore часов часа godzin saat": 3600,
        "day days tag tage tagen dia dias jour jours giorni дней дня dni gun": 86_400,
        "week weeks wochen semanas semaines": 604_800,
    },
    "byte": {
        "byte bytes": 1,
        "kb kilobyte kilobytes": 1e3,
        "kib kibibyte kibibytes": 1024,
        "mb megabyte megabytes": 1e6,
        "mib mebibyte mebibytes": 1024**2,
        "gb gigabyte gigabytes": 1e9,
        "gib gibibyte gibibytes": 1024**3,
        "tb": 1e12,
        "tib": 1024**4,
    },
    "hertz": {"hz hertz": 1, "khz kilohertz": 1e3, "mhz megahertz": 1e6, "ghz gigahertz": 1e9},
    "metre": {"mm": 1e-3, "cm": 1e-2, "m metre metres meter meters": 1, "km": 1e3},
    "percent": {"% percent prozent porciento pourcent процентов yuzde": 1},
    "": {
        "x time times mal fois veces vez vezes volte раз раза razy kez": 1,
        "k thousand tausend": 1e3,
        "mio million millions": 1e6,
    },
}
# What a unit measures, and how many of the plainest unit it is.
UNITS = {
    unit: (measured, factor)
    for measured, factors in _FACTORS.items()
    for units, factor in factors.items()
    for unit in units.split()
}
# A capital that is no metre.
MILLION = ("", 1e6)
