"""The words that numbers, addresses and symbols are said with, by language."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Money:
    """A currency's names: one unit, several units, one hundredth, several hundredths."""

    one: str
    many: str
    cent: str = ""
    cents: str = ""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """One language's words for what is not written in words."""

    code: str
    decimal_comma: bool
    """Whether ``3,5`` is three and a half and ``1.000`` a thousand."""

    point: str
    minus: str
    plus: str
    percent: str
    to: str
    both: str
    """The word between two amounts (``and``)."""
    number: str
    at: str
    dot: str
    dash: str
    underscore: str
    slash: str
    degrees: str
    equals: str
    times: str
    money: Mapping[str, Money]
    scales: Mapping[str, str]
    """What ``K``, ``M``, ``B`` and ``T`` behind a number stand for."""


_DOLLAR = Money("dollar", "dollars", "cent", "cents")
_ENGLISH_MONEY = {
    "$": _DOLLAR,
    "US$": _DOLLAR,
    "USD": _DOLLAR,
    "€": Money("euro", "euros", "cent", "cents"),
    "EUR": Money("euro", "euros", "cent", "cents"),
    "£": Money("pound", "pounds", "penny", "pence"),
    "GBP": Money("pound", "pounds", "penny", "pence"),
    "¥": Money("yen", "yen"),
    "JPY": Money("yen", "yen"),
    "CN¥": Money("yuan", "yuan"),
    "CNY": Money("yuan", "yuan"),
    "₹": Money("rupee", "rupees", "paisa", "paise"),
    "INR": Money("rupee", "rupees", "paisa", "paise"),
    "₩": Money("won", "won"),
    "KRW": Money("won", "won"),
    "₽": Money("ruble", "rubles", "kopeck", "kopecks"),
    "RUB": Money("ruble", "rubles", "kopeck", "kopecks"),
    "₺": Money("lira", "lira"),
    "TRY": Money("lira", "lira"),
    "₴": Money("hryvnia", "hryvnias"),
    "UAH": Money("hryvnia", "hryvnias"),
    "₪": Money("shekel", "shekels"),
    "ILS": Money("shekel", "shekels"),
    "฿": Money("baht", "baht"),
    "THB": Money("baht", "baht"),
    "₫": Money("dong", "dong"),
    "₱": Money("peso", "pesos", "centavo", "centavos"),
    "MXN": Money("Mexican peso", "Mexican pesos", "centavo", "centavos"),
    "₦": Money("naira", "naira"),
    "NGN": Money("naira", "naira"),
    "R$": Money("real", "reals", "centavo", "centavos"),
    "BRL": Money("real", "reals", "centavo", "centavos"),
    "C$": Money("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "CA$": Money("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "CAD": Money("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "A$": Money("Australian dollar", "Australian dollars", "cent", "cents"),
    "AU$": Money("Australian dollar", "Australian dollars", "cent", "cents"),
    "AUD": Money("Australian dollar", "Australian dollars", "cent", "cents"),
    "NZ$": Money("New Zealand dollar", "New Zealand dollars", "cent", "cents"),
    "NZD": Money("New Zealand dollar", "New Zealand dollars", "cent", "cents"),
    "HK$": Money("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "HKD": Money("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "SGD": Money("Singapore dollar", "Singapore dollars", "cent", "cents"),
    "CHF": Money("Swiss franc", "Swiss francs", "centime", "centimes"),
    "SEK": Money("Swedish krona", "Swedish kronor"),
    "NOK": Money("Norwegian krone", "Norwegian kroner"),
    "DKK": Money("Danish krone", "Danish kroner"),
    "PLN": Money("zloty", "zlotys"),
    "ZAR": Money("rand", "rand"),
}


def _abroad(dollar: Money, euro: Money, pound: Money, yen: Money, franc: Money) -> dict[str, Money]:
    names = {"$": dollar, "US$": dollar, "USD": dollar, "€": euro, "EUR": euro, "£": pound, "GBP": pound}
    return names | {"¥": yen, "JPY": yen, "CHF": franc}


ENGLISH = Lexicon(
    code="en",
    decimal_comma=False,
    point="point",
    minus="minus",
    plus="plus",
    percent="percent",
    to="to",
    both="and",
    number="number",
    at="at",
    dot="dot",
    dash="dash",
    underscore="underscore",
    slash="slash",
    degrees="degrees",
    equals="equals",
    times="times",
    money=_ENGLISH_MONEY,
    scales={"K": "thousand", "M": "million", "B": "billion", "T": "trillion"},
)

SPANISH = Lexicon(
    code="es",
    decimal_comma=True,
    point="coma",
    minus="menos",
    plus="más",
    percent="por ciento",
    to="a",
    both="con",
    number="número",
    at="arroba",
    dot="punto",
    dash="guion",
    underscore="guion bajo",
    slash="barra",
    degrees="grados",
    equals="igual a",
    times="por",
    money=_abroad(
        Money("dólar", "dólares", "centavo", "centavos"),
        Money("euro", "euros", "céntimo", "céntimos"),
        Money("libra", "libras", "penique", "peniques"),
        Money("yen", "yenes"),
        Money("franco suizo", "francos suizos", "céntimo", "céntimos"),
    ),
    scales={"K": "mil", "M": "millones", "B": "mil millones", "T": "billones"},
)

FRENCH = Lexicon(
    code="fr",
    decimal_comma=True,
    point="virgule",
    minus="moins",
    plus="plus",
    percent="pour cent",
    to="à",
    both="et",
    number="numéro",
    at="arobase",
    dot="point",
    dash="tiret",
    underscore="tiret bas",
    slash="barre oblique",
    degrees="degrés",
    equals="égale",
    times="fois",
    money=_abroad(
        Money("dollar", "dollars", "cent", "cents"),
        Money("euro", "euros", "centime", "centimes"),
        Money("livre", "livres", "penny", "pence"),
        Money("yen", "yens"),
        Money("franc suisse", "francs suisses", "centime", "centimes"),
    ),
    scales={"K": "mille", "M": "millions", "B": "milliards", "T": "billions"},
)

GERMAN = Lexicon(
    code="de",
    decimal_comma=True,
    point="Komma",
    minus="minus",
    plus="plus",
    percent="Prozent",
    to="bis",
    both="und",
    number="Nummer",
    at="ät",
    dot="Punkt",
    dash="Bindestrich",
    underscore="Unterstrich",
    slash="Schrägstrich",
    degrees="Grad",
    equals="gleich",
    times="mal",
    money=_abroad(
        Money("Dollar", "Dollar", "Cent", "Cent"),
        Money("Euro", "Euro", "Cent", "Cent"),
        Money("Pfund", "Pfund", "Penny", "Pence"),
        Money("Yen", "Yen"),
        Money("Franken", "Franken", "Rappen", "Rappen"),
    ),
    scales={"K": "Tausend", "M": "Millionen", "B": "Milliarden", "T": "Billionen"},
)

_LANGUAGES = {lexicon.code: lexicon for lexicon in (ENGLISH, SPANISH, FRENCH, GERMAN)}


def lexicon(language: str) -> Lexicon:
    """The words of an ISO 639-1 code, region allowed (``en-GB``).

    Raises ValueError for a language without one.
    """
    code = language.split("-")[0].split("_")[0].lower()
    if code not in _LANGUAGES:
        known = ", ".join(_LANGUAGES)
        raise ValueError(f"no words for numbers in language {language!r}; use one of {known}")
    return _LANGUAGES[code]


def word_set(words: str) -> frozenset[str]:
    """A set of words from one string of them."""
    return frozenset(words.split())
