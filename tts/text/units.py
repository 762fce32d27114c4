"""Percentages and units of measure behind a number."""

import re

from tts.text.counts import TOTAL_CUES, is_decade
from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import NUMBER, RANGE, SIGN, amount, cardinal, integer, is_one, number, sign
from tts.text.rules import Rule, attributive, ends_sentence, rule, word_after, word_before

_UNITS = {
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "mph": ("mile per hour", "miles per hour"),
    "m/s": ("meter per second", "meters per second"),
    "mpg": ("mile per gallon", "miles per gallon"),
    "Mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "MB/s": ("megabyte per second", "megabytes per second"),
    "sq ft": ("square foot", "square feet"),
    "sq. ft.": ("square foot", "square feet"),
    "ft²": ("square foot", "square feet"),
    "km²": ("square kilometer", "square kilometers"),
    "m²": ("square meter", "square meters"),
    "m³": ("cubic meter", "cubic meters"),
    "fl oz": ("fluid ounce", "fluid ounces"),
    "km": ("kilometer", "kilometers"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "m": ("meter", "meters"),
    "mi": ("mile", "miles"),
    "ft": ("foot", "feet"),
    "yd": ("yard", "yards"),
    "yds": ("yard", "yards"),
    "kg": ("kilogram", "kilograms"),
    "mg": ("milligram", "milligrams"),
    "g": ("gram", "grams"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "ml": ("milliliter", "milliliters"),
    "mL": ("milliliter", "milliliters"),
    "L": ("liter", "liters"),
    "gal": ("gallon", "gallons"),
    "tbsp": ("tablespoon", "tablespoons"),
    "tsp": ("teaspoon", "teaspoons"),
    "doz": ("dozen", "dozen"),
    "KB": ("kilobyte", "kilobytes"),
    "kB": ("kilobyte", "kilobytes"),
    "MB": ("megabyte", "megabytes"),
    "GB": ("gigabyte", "gigabytes"),
    "TB": ("terabyte", "terabytes"),
    "Hz": ("hertz", "hertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"),
    "kWh": ("kilowatt hour", "kilowatt hours"),
    "kW": ("kilowatt", "kilowatts"),
    "MW": ("megawatt", "megawatts"),
    "W": ("watt", "watts"),
    "V": ("volt", "volts"),
    "mAh": ("milliamp hour", "milliamp hours"),
    "dB": ("decibel", "decibels"),
    "psi": ("pound per square inch", "pounds per square inch"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "bpm": ("beat per minute", "beats per minute"),
    "fps": ("frame per second", "frames per second"),
    "kcal": ("kilocalorie", "kilocalories"),
    "cal": ("calorie", "calories"),
    "px": ("pixel", "pixels"),
    "hrs": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "h": ("hour", "hours"),
    "mins": ("minute", "minutes"),
    "min": ("minute", "minutes"),
    "secs": ("second", "seconds"),
    "sec": ("second", "seconds"),
    "s": ("second", "seconds"),
    "ms": ("millisecond", "milliseconds"),
    "mos": ("month", "months"),
    "mo": ("month", "months"),
    "wks": ("week", "weeks"),
    "wk": ("week", "weeks"),
    "yrs": ("year", "years"),
    "yr": ("year", "years"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "℃": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "℉": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"),
}
_UNIT_NAMES = "|".join(re.escape(name) for name in sorted(_UNITS, key=len, reverse=True))
_TAKING = word_set("take takes taking use add need needs buy order get give bring")
_ABBREVIATED = word_set(
    "km cm mm mi ft yd yds kg lb lbs oz ml gal tbsp tsp doz mos hrs hr mins min secs sec wks wk yrs yr"
)


def _percent(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{sign(match, lexicon)}{amount(match['low'], match['high'], lexicon)} {lexicon.percent}"


def _unit(match: re.Match[str], lexicon: Lexicon) -> str | None:
    name = match["unit"]
    if name == "s" and is_decade(match):
        return None
    singular, plural = _UNITS[name]
    one = is_one(match["low"]) and match["high"] is None
    words = singular if one or match["gap"] == "-" or attributive(match) else plural
    stop = ""
    if match["stop"]:
        if name not in _ABBREVIATED and not ends_sentence(match):
            return None
        stop = "." if ends_sentence(match) else ""
    return f"{sign(match, lexicon)}{amount(match['low'], match['high'], lexicon)} {words}{stop}"


def _spaced_unit(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``1 200 kg``; ``2 500 mg tablets`` are two of 500 mg."""
    low, unit = match["low"], match["unit"]
    following, short = word_after(match), len(low) == 5
    if low.count(" ") == 1 and following.endswith("s") and following not in ("is", "was", "has"):
        return None
    if short and word_before(match) not in TOTAL_CUES and (following or word_before(match) in _TAKING):
        return None
    stop = "." if match["stop"] and ends_sentence(match) else ""
    return f"{integer(low.replace(' ', ''), lexicon.code)} {_UNITS[unit][1]}{stop}"


def _sized(match: re.Match[str], lexicon: Lexicon) -> str:
    """``10 x 20 cm``."""
    sides = [number(side, lexicon) for side in re.split(r"\s?[x×]\s?", match["sides"])]
    stop = "." if match["stop"] and ends_sentence(match) else ""
    return f"{' by '.join(sides)} {_UNITS[match['unit']][1]}{stop}"


def _height(match: re.Match[str], lexicon: Lexicon) -> str:
    feet = cardinal(int(match["feet"]))
    return f"{feet} foot {cardinal(int(match['inches']))}"


def _inches(match: re.Match[str], lexicon: Lexicon) -> str | None:
    if match.string.count('"', max(0, match.start() - 200), match.start()) % 2:
        return None  # it closes a quotation
    one = is_one(match["low"]) or attributive(match)
    return f"{number(match['low'], lexicon)} {'inch' if one else 'inches'}"


UNITS: list[Rule] = [
    rule(r"(?P<feet>\d{1,2})'\s?(?P<inches>\d{1,2})\"", _height, "digit", english=True),
    rule(rf"(?P<low>{NUMBER})\"(?=[\s,.;)]|$)(?<!\d\d\d\")", _inches, "digit", english=True),
    rule(rf"{SIGN}{RANGE}\s?%", _percent),
    rule(
        rf"(?P<low>\d{{1,3}}(?:[ ]\d{{3}}){{1,4}})[ ](?P<unit>{_UNIT_NAMES})(?!\w|/\w)(?P<stop>\.(?!\w))?",
        _spaced_unit,
        "digit",
        english=True,
    ),
    rule(
        rf"(?P<sides>{NUMBER}(?:\s?[x×]\s?{NUMBER}){{1,2}})\s?(?P<unit>{_UNIT_NAMES})(?!\w|/\w)(?P<stop>\.(?!\w))?",
        _sized,
        "digit",
        english=True,
    ),
    rule(
        rf"{SIGN}{RANGE}(?P<gap>\s?|-)(?P<unit>{_UNIT_NAMES})(?!\w|/\w)(?P<stop>\.(?!\w))?",
        _unit,
        english=True,
    ),
]
