"""What the words around a number say it is: a code, a telephone number, or a count of something.

Only the sentence that the number stands in is asked, and of it a bounded part on either side.
"""

import re

from tts.text.lexicon import word_set

_NEAR = 120
_SENTENCE_END = re.compile(
    r"[.!?;](?<!\btel\.)(?<!\bph\.)(?<!\bno\.)(?<!\bnr\.)(?<!\bext\.)(?<!\bref\.)(?<!\bacct\.)(?<!\bconf\.)\s"
    r"(?!(?:(?:it|that)(?:'s|\s(?:is|was))\s)?[\"']?$|(?:(?:is|was)\s(?:it|this|that)|(?:it|this|that)(?:'s|\sis))\s)|\n",
    re.IGNORECASE,
)
"""Where a sentence ends, but for ``Here is your code. It is 4821.`` and ``4821. Is that your code?``

The mark comes first in the pattern: what is asked of the words around it is asked at marks only.
"""

# What is counted -----------------------------------------------------------------------------------------

_GOES_ON = word_set(
    "is was are were will would as for when if once after before and or but to in on at by with from than "
    "now today please then so that which who because until till immediately right instead any anytime "
    "also not the a an your our my his her their it this these those we you i he she they again here "
    "there free first only has had have can may must should does do did toll day night came went"
)
"""Words that a counted noun does not stand behind: ``call 311 now to report rats``."""
_NOT_PLURAL = word_set(
    "us its yes always plus perhaps besides unless across towards sometimes afterwards works opens "
    "expires starts ends comes goes needs gets ships arrives leaves departs runs boards lands contains "
    "costs includes covers belongs shows says looks seems means matches remains stays gives takes lets "
    "makes press address less express business"
)
_COUNTED = word_set(
    "people persons men women children kids guests customers users callers dollars euros pounds cents "
    "pence yen rupees francs percent hundred thousand million billion trillion dozen times items units "
    "seconds minutes hours days weeks months years year old miles meters metres feet inches kilometers "
    "kilometres grams kilos kilograms liters litres degrees points steps words characters letters pages "
    "seats rooms copies mg ml g kg km cm mm m mi ft lb lbs oz hrs mins gb mb kb uhr personen menschen "
    "leute stück euro dollar prozent minuten stunden tage personnes minutes heures jours personas minutos "
    "horas días"
)
_ONWARD = re.compile(r"[ -]([^\W\d_]{1,40})")


def is_counted(text: str, end: int, *, surely: bool = False) -> bool:
    """Whether a number that ends at a place counts something: ``300 customers``, ``1500 US dollars``.

    ``surely`` takes words for people, money, time and measures only, not anything in the plural.
    """
    if text[end : end + 2].lstrip()[:1] in tuple("%€£$°¢"):
        return True
    for _ in range(3):
        found = _ONWARD.match(text, end)
        word = found[1].lower() if found else ""
        if word in _COUNTED:
            return True
        if not found or word in _GOES_ON:
            return False
        if not surely and _is_plural(word):
            return True
        end = found.end()
    return False


def _is_plural(word: str) -> bool:
    return (
        len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
        and word not in _NOT_PLURAL
    )


# Sentences -----------------------------------------------------------------------------------------------


def before(match: re.Match[str]) -> str:
    """The part of the sentence in front of a match."""
    text = match.string[max(0, match.start() - _NEAR) : match.start()]
    ends = list(_SENTENCE_END.finditer(text))
    return text[ends[-1].end() :] if ends else text


def after(text: str, end: int) -> str:
    """The rest of the sentence behind a place."""
    rest = text[end : end + _NEAR]
    found = _SENTENCE_END.search(rest)
    return rest[: found.start()] if found else rest


# Codes ---------------------------------------------------------------------------------------------------

_AMOUNTS = (
    r"(?:prices?|costs?|total|fees?|balance|limit|amount|value|deposit|rate|distance|weight|population|capacity|year"
    r"|charge|fare|payment|sum|discount|length|size|maximum|minimum|quantity|age|worth|budget|count|number\sof)"
)
_CODE = (
    r"(?:pass[ -]?codes?|post[ -]?codes?|codes?|pins?|otps?|pass[ -]?words?|zips?|ids?|cvv|cvc|iban|isbn|ssn"
    r"|vin|imei|tokens?|digits|serial|plz|postleitzahl|kennwort|\w{0,30}passwort|\w{1,30}code|tan|código|clave|contraseña"
    r"|mot\sde\spasse|account|confirmation|reference|ref|tracking|passport|routing|licen[cs]e|booking|reservation"
    r"|flight|extension|ext|référence|referencia|reserva|combinations?|licen[cs]e\splate|number\splate|conf"
    r"|(?:last|first)\s(?:two|three|four|five|six|[2-6]))"
)
"""Words whose number is read digit by digit however short it is."""
_NUMBERED = (
    r"(?:number|no|nr|order|ticket|case|invoice|policy|claim|membership|customer|patient|voucher|badge"
    r"|\w{2,30}nummer|nummer|numéro|número|commande|pedido|\#)"
)
"""Words whose number is read digit by digit when it is long: ``order 4471``, but ``order 12``."""
_LONG = 4
_THE = (
    r"(?:your|the|my|our|his|her|their|its|an?|this|that|ihre?|deine?|meine?|der|die|das|votre|ton|mon|ma|le|la|su|tu"
    r"|mi|el)"
)
_IS = (
    r"(?:is|was|are|were|isn't|wasn't|aren't|(?:will|would|should|must|may|might|can|could|cannot|can't|won't|used\sto|has\sto"
    r"|have\sto|needs\sto)\sbe|becomes?|became|remains?|equals?|ist|war|lautet|est|sera|es|era|será)"
    r"(?:\s(?:now|still|just|also|simply|not|currently|jetzt))?"
)
_LINK = (
    rf"(?:\s?[:=\#–—-]|(?:,?\s(?:{_IS}|reads?|says?|shows?|being)|'s):?|[:,?]\s(?:is|was)\s(?:it|this|that)"
    r"|[.!?](?:\s(?:it|that)(?:'s|\s(?:is|was)))?)"
)
_ASIDE = (
    r"(?:,[^,]{1,70},|\s(?:for|on|of|to|at|in|from|with|which|that|we|you|i|they|he|she|sent|shown|printed|below|here"
    r"|again)\b[^,:]{0,80}?)"
)
_OPEN = r"[\"'“(]?(?-i:[A-Z]{1,4}[ -])?$"
"""What may stand between the cue and the digits: a quotation mark, the code's own letters."""
_EARLIER = re.compile(
    r"(?<![\d -])[\d -]{1,24}"
    r"(?:,|,?\s(?:and|or|not|und|oder|et|ou|y|o)|[.,;]\s(?:(?:it|that)(?:'s|\s(?:is|was))|but(?:\srather)?))\s$",
    re.IGNORECASE,
)
_AMOUNT_OF = re.compile(
    rf"\b{_AMOUNTS}\s(?:(?:of|for|on|in|to)\s)?(?:{_THE}\s)?(?:[\w-]+\s)?$", re.IGNORECASE
)


def _cued(cue: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<!\w)(?P<cue>{cue})(?!\w)(?:(?<=no)\.|(?<=nr)\.|(?<=ref)\.)?(?!\sof\s(?!{_THE}\s))"
        rf"(?P<aside>{_ASIDE})?(?P<link>{_LINK})?\s*(?:(?:le|la|die|das|el)\s)?{_OPEN}",
        re.IGNORECASE,
    )


def _noun(cue: str) -> str:
    """A noun phrase that ends in a cue: ``your new four-digit PIN``, not ``the maximum password length``."""
    return (
        rf"(?:(?!(?:of|for|in|on|at|with|to|from|by|than|about|{_AMOUNTS})\b)[\w'-]+\s){{0,5}}?{cue}"
        r"(?=[\"')]*(?:$|[.,!?:]|\s(?:for|to|on|at|in|and|or|but|you|we|they|i|that|which|is|was|so|if|when|from|now|with"
        r"|here|today|please|again)\b))"
    )


def _behind(cue: str, the: str) -> re.Pattern[str]:
    """What follows a code: ``is your PIN``, ``as the code``, ``which is my PIN``."""
    noun = _noun(cue)
    return re.compile(
        rf"[\"')]*(?:,?\s(?:which\s)?(?:{_IS}|match(?:es)?|(?:does\snot|doesn't|did\snot|didn't)\smatch)\s{noun}"
        rf"|\s(?:(?!(?:{_AMOUNTS}|points|of)\b)[\w'-]+\s){{0,4}}?as\s{the}\s{noun}"
        rf"|[.,;]?\s(?:(?:is|was)\s(?:it|this|that)|[–—-]?\s?(?:it|this|that)(?:'s|\s{_IS}))\s{noun}"
        r"|\s(?:zip|area|postal|country|dialling|dialing)(?:\scode)?(?!\w))",
        re.IGNORECASE,
    )


_BEFORE, _BEFORE_LONG = _cued(_CODE), _cued(_NUMBERED)
_BEHIND, _BEHIND_LONG = _behind(_CODE, _THE), _behind(_NUMBERED, rf"(?!an?\s){_THE}")
_SECRET = r"(?:pass[ -]?code|code|pin|otp|pass[ -]?word|reference|id)"
_FOR = re.compile(
    rf"[\"')]*\s(?:(?:is|was|isn't)\s(?!the\b)[\w-]+\s)?for\s{_THE}\s{_noun(_SECRET)}", re.IGNORECASE
)
"""``5512 for my PIN``: of what has no price of its own."""
_OF = re.compile(rf"\b{_SECRET}\sof\s[\"'“]?$", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_APPOSED = re.compile(rf"(?:,|\s[–—-]|\s\(|\s)\s?{_THE}\s{_noun(_CODE)}", re.IGNORECASE)
_APPOSED_LONG = re.compile(rf"(?:,|\s[–—-]|\s\(|\s)\s?{_THE}\s{_noun(_NUMBERED)}", re.IGNORECASE)
_APPOSED_TO = re.compile(rf"(?<!\w)(?:{_CODE}|number),\s[\"'“]?$", re.IGNORECASE)
_SET_APART = re.compile(r"[\"')]*(?:,|\s[–—-]|\s\()")
_AT_TIME = re.compile(
    r"\b(?:in|since|by|until|of|from|during|for|on)\s(?:the\s)?(?:years?\s)?$", re.IGNORECASE
)
_ASKING = re.compile(r"(?:^|[,:]\s|\b(?:and|or|but)\s)(?:is|was|isn't|wasn't)\s[\"']?$", re.IGNORECASE)
_PAID = re.compile(
    r"\b(?:pa(?:y|ys|id)|owe[sd]?|costs?|charged?|sold|spen[dt]|earned|scored|saved?)\s$", re.IGNORECASE
)
_DEPOSITED = re.compile(rf"\s(?:in|into|to|from|on)\s{_THE}\s(?:[\w-]+\s)?account\b", re.IGNORECASE)
_ENTERING = re.compile(
    r"\b(?:enter|use|type|key|punch|input|give|quote|say|try|provide|submit|mention|dial|press|read|put)(?:\s(?:in|out|them))?"
    r"\s[\"']?$",
    re.IGNORECASE,
)
_CUES = word_set(
    "pass passcode passcodes post postcode postcodes code codes pin pins otp otps password passwords word "
    "words zip zips id ids cvv cvc iban isbn ssn vin imei token tokens digits serial plz postleitzahl "
    "kennwort tan código clave contraseña mot account confirmation reference ref tracking passport "
    "routing license licence booking reservation extension ext référence referencia reserva number "
    "numbers no nr order ticket case invoice flight policy claim membership customer patient voucher "
    "badge numéro número commande pedido area card phone mobile visa mastercard amex combination "
    "combinations plate conf last first keypad keyboard hash pound star unlock verify log sign followed"
)
_CUE_ENDINGS = ("code", "passwort", "nummer")
_WORD = re.compile(r"[^\W\d_]+")
_NAMED = re.compile(
    rf"\b(?:{_CODE}|number|keypad|keyboard|hash|pound\s(?:key|sign)|star\skey|followed\sby|to\s(?:unlock|verify|log\sin|sign\sin))\b",
    re.IGNORECASE,
)
_AMOUNT = re.compile(rf"\b{_AMOUNTS}\b", re.IGNORECASE)
_CHANGED = re.compile(
    rf"(?:\b(?:chang|set|reset|updat)\w*\s[^.]{{0,40}}{_CODE}"
    rf"|{_CODE}\s[\w ]{{0,20}}(?:changed|set|reset|updated))\sto\s[\"']?$",
    re.IGNORECASE,
)
_ENDING = re.compile(
    r"\b(?:card|number|phone|mobile|visa|mastercard|amex|iban|account|policy|order|(?:pass)?code|pin|password)\b[^.]{0,40}"
    r"\b(?:end|start|begin)(?:s|ing|ning)?(?:\s(?:in|with))?\s$",
    re.IGNORECASE,
)


def is_code(match: re.Match[str], digits: str) -> bool:
    """Whether the words beside digits make them a code, on either side and some words away."""
    text, end = match.string, match.end()
    front, rest = before(match), after(text, end)
    if not _has_cue(front) and not _has_cue(rest):
        return False
    front = _EARLIER.sub("", front)
    if is_counted(text, end, surely=True):
        return False
    counted = is_counted(text, end)
    if _is_named_before(front, rest, digits, counted):
        return True
    if _ENDING.search(front):
        return len(digits) >= _LONG
    if len(digits) < 3 or _PAID.search(front):
        return False
    long = len(digits) >= _LONG
    if long and not counted and (_FOR.match(rest) or (_OF.search(front) and not _YEAR.fullmatch(digits))):
        return True
    if _BEHIND.match(rest) or (long and _BEHIND_LONG.match(rest)):
        return True
    if _ENTERING.search(front):
        return bool(_NAMED.search(rest)) and not (_AMOUNT.search(rest) or _DEPOSITED.match(rest))
    apposed = _APPOSED.match(rest) or (long and _APPOSED_LONG.match(rest))
    if not apposed:
        return False
    return bool(_ASKING.search(front)) or (bool(_SET_APART.match(rest)) and not _AT_TIME.search(front))


def _has_cue(words: str) -> bool:
    """Whether any of the words may be a cue at all: cheap, for most numbers stand without one."""
    return "#" in words or any(
        word in _CUES or word.endswith(_CUE_ENDINGS) for word in map(str.lower, _WORD.findall(words))
    )


def _is_named_before(front: str, rest: str, digits: str, counted: bool) -> bool:
    if _CHANGED.search(front):
        return not counted
    if len(digits) >= _LONG and _APPOSED_TO.search(front) and not counted and _SET_APART.match(rest):
        return True  # "your PIN, 1990, is active"
    for pattern, least in ((_BEFORE, 1), (_BEFORE_LONG, _LONG)):
        found = pattern.search(front)
        if not found or len(digits) < least:
            continue
        if counted and (found["link"] or least > 1):
            continue  # "the password is 12 characters long", "order 1500 chairs"
        if found["aside"] and (not found["link"] or _AMOUNT.search(found["aside"])):
            continue
        if not (found["link"] and _AMOUNT_OF.search(front[: found.start()])):
            return True
    return False
