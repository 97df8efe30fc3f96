"""Secrets of many shapes that open nothing, put together from pieces at run time so that no scanner takes alarm."""

import base64
import random
import string

ALPHANUMERIC = string.ascii_letters + string.digits
URL_SAFE = ALPHANUMERIC + "-_"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"


class Maker:
    """Draws random characters, the same for the same seed, always with a digit and a letter among them."""

    def __init__(self, seed: int) -> None:
        """Start from a seed."""
        self._random = random.Random(seed)

    def draw(self, length: int, alphabet: str = ALPHANUMERIC) -> str:
        """A string of the length from the alphabet."""
        drawn = [self._random.choice(alphabet) for _ in range(length)]
        if length > 3 and "2" in alphabet and any(letter.isalpha() for letter in alphabet):
            drawn[1], drawn[2] = "7", next(letter for letter in alphabet if letter.isalpha())
        return "".join(drawn)


def canaries(seed: int = 1) -> dict[str, str]:
    """One secret of each kind, by a name for the kind; the values alone, without what stands around them."""
    draw = Maker(seed).draw
    body = "\n".join(draw(64) for _ in range(4))
    return {
        "AWS key id": "AK" + "IA" + draw(16, BASE32),
        "GitHub classic": "gh" + "p_" + draw(36),
        "GitHub server": "gh" + "s_" + draw(36),
        "GitHub fine-grained": "github_" + "pat_" + draw(22) + "_" + draw(59),
        "GitLab": "gl" + "pat-" + draw(20, URL_SAFE),
        "Slack bot": "xo" + "xb-" + draw(12, string.digits) + "-" + draw(12, string.digits) + "-" + draw(24),
        "Stripe live": "sk" + "_live_" + draw(24),
        "Stripe restricted": "rk" + "_live_" + draw(24),
        "Google API": "AI" + "za" + draw(35, URL_SAFE),
        "OpenAI project": "sk" + "-proj-" + draw(48),
        "Anthropic": "sk" + "-ant-api03-" + draw(80) + "-" + draw(6),
        "npm": "np" + "m_" + draw(36),
        "PyPI": "py" + "pi-AgEIcHlwaS5vcmc" + draw(60, URL_SAFE),
        "JWT": "ey" + "J" + draw(20) + ".ey" + "J" + draw(40) + "." + draw(43, URL_SAFE),
        "SendGrid": "S" + "G." + draw(22) + "." + draw(43),
        "Twilio": "S" + "K" + draw(32, HEX),
        "Telegram": draw(9, "3456789") + ":A" + "A" + draw(33),
        "Discord": "M" + draw(23) + "." + draw(6) + "." + draw(38),
        "Hugging Face": "h" + "f_" + draw(34),
        "DigitalOcean": "do" + "p_v1_" + draw(64, HEX),
        "age": "AGE-SECRET" + "-KEY-1" + draw(58, BASE32),
        "Databricks": "da" + "pi" + draw(32, HEX),
        "Shopify": "sh" + "pat_" + draw(32, HEX),
        "Vault": "hv" + "s." + draw(90),
        "Grafana": "gl" + "sa_" + draw(32) + "_" + draw(8, HEX),
        "Atlassian": "ATA" + "TT3" + draw(180, URL_SAFE),
        "Terraform": draw(14) + ".atlas" + "v1." + draw(67, URL_SAFE),
        "Figma": "fi" + "gd_" + draw(40, URL_SAFE),
        "Perplexity": "pp" + "lx-" + draw(48),
        "Tavily": "tv" + "ly-dev-" + draw(32),
        "LangSmith": "ls" + "v2_pt_" + draw(32, HEX) + "_" + draw(10, HEX),
        "Doppler": "dp" + ".pt." + draw(43),
        "RubyGems": "ruby" + "gems_" + draw(48, HEX),
        "Netlify": "nf" + "p_" + draw(36),
        "Fly": "fm" + "2_" + draw(120),
        "Airtable": "pa" + "t" + draw(14) + "." + draw(64, HEX),
        "private key": "-----BEGIN RSA " + f"PRIVATE KEY-----\n{body}\n-----END RSA " + "PRIVATE KEY-----",
    }


def spoken(value: str) -> dict[str, str]:
    """Ways in which people tell a password, in many languages and forms."""
    return {
        "far from its name": f"The password for the staging database is {value}, ask Ines for the others.",
        "bold": f"**Password:** {value}",
        "changed": f"The root password was changed to {value} after the audit.",
        "before its name": f"Use {value} as the bearer token of the deploy job.",
        "table": f"| password | {value} |",
        "narrow table": f"|db|password|{value}|",
        "short name": f"SMTP_PASS={value}",
        "user and pass": f"user: admin pass: {value}",
        "element": f"<password>{value}</password>",
        "French": f"Le mot de passe de la base est {value}.",
        "Portuguese": f"A senha do banco de testes é {value}.",
        "Russian": f"Пароль от тестовой базы: {value}",
        "Japanese": f"検証用データベースのパスワードは{value}です。",
        "Polish": f"Hasło do bazy testowej to {value}.",
        "Turkish": f"Test veritabanının şifresi {value}.",
        "Dutch": f"Het wachtwoord van de testdatabase is {value}.",
        "Spanish": f"La contraseña de la base de pruebas es {value}.",
        "German": f"Das Passwort der Testdatenbank lautet {value}.",
    }


def embedded(seed: int = 2) -> dict[str, tuple[str, str]]:
    """Secrets that only what stands around them gives away: the text, and the secret in it."""
    draw = Maker(seed).draw
    values = [draw(20) for _ in range(12)]
    storage = draw(86) + "=="
    secret_key = draw(40)
    uuid = "-".join(draw(length, HEX) for length in (8, 4, 4, 4, 12))
    basic = base64.b64encode(f"ci:{draw(18)}".encode()).decode()
    mailgun, sentry = "key" + "-" + draw(32, HEX), draw(32, HEX)
    hook = f"T{draw(8)}/B{draw(8)}/{draw(24)}"
    return {
        "connection string": (f"postgres://app:{values[0]}@db.internal:5432/orders", values[0]),
        "basic auth in a URL": (f"https://ci:{values[1]}@git.example.org/acme/app.git", values[1]),
        "Azure storage": (f"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={storage}", storage),
        "AWS secret": (f"aws_secret_access_key = {secret_key}", secret_key),
        "assignment": (f'password = "{values[2]}"', values[2]),
        "YAML": (f"api_key: {values[3]}", values[3]),
        "JSON": (f'{{"client_secret": "{values[4]}"}}', values[4]),
        "environment": (f"export DB_PASSWORD={values[5]}", values[5]),
        "header": (f"Authorization: Bearer {values[6]}", values[6]),
        "prose": (f"The admin password is {values[7]} on staging.", values[7]),
        "German": (f"Passwort: {values[8]}", values[8]),
        "Chinese": (f"数据库密码：{values[9]}，请勿外传", values[9]),
        "curl": (f"curl -u deploy:{values[10]} https://repo.example.org", values[10]),
        "colon without a space": (f"password:{values[2]}", values[2]),
        "UUID as a key": (f"HEROKU_API_KEY={uuid}", uuid),
        "brackets inside": (f"db_password = {values[3]}(){{}}${values[4]}", f"{values[3]}(){{}}${values[4]}"),
        "basic header": (f"Authorization: Basic {basic}", basic),
        "sshpass": (f"sshpass -p {values[5]} ssh root@10.0.0.7", values[5]),
        "mysql": (f"mysql -u root -p{values[6]} orders", values[6]),
        "docker login": (f"docker login -u ci -p {values[7]} registry.example.org", values[7]),
        "Mailgun": (f"the mailgun account sends with {mailgun}", mailgun),
        "Sentry": (f"https://{sentry}@o17.ingest.sentry.io/4505", sentry),
        "Slack webhook": (f"https://hooks.slack.com/services/{hook}", hook),
    }
