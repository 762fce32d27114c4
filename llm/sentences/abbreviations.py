"""Abbreviations by what may follow their full stop. Lower case, without the last stop.

The voices have a list of the English ones and of what they stand for (no stage imports another); a test holds
the two together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Abbreviations:
    """One language's abbreviations, as lower-case words without their final full stop."""

    titles: frozenset[str]
    """Stand before a name and never end a sentence. Only when written with a capital."""

    never: frozenset[str]
    """Point forward (``e.g.``, ``vs.``): never end a sentence."""

    may_end: frozenset[str]
    """End a sentence only where a capital follows (``etc.``, ``Inc.``)."""

    capitalised: frozenset[str] = field(default_factory=frozenset)
    """The same, but words of their own unless written with a capital (``Sat.``, ``Mass.``)."""

    numbered: frozenset[str] = field(default_factory=frozenset)
    """Ordinary words that are abbreviations before a digit (``No. 5``)."""

    ordinal_stop: bool = False
    """Whether the language writes ordinals with a full stop (``3. Oktober``)."""


ENGLISH = Abbreviations(
    titles=_words(
        "mr mrs ms mx messrs dr drs prof profs gen sen rep gov capt cpt cmdr lt col maj sgt cpl pvt pfc "
        "adm brig rev revd fr hon pres supt supv insp st ste mt ft pt sr sra mme mlle det ofc amb atty "
        "asst mgr msgr cllr dep"
    ),
    never=_words(
        "e.g i.e p.o eg ie vs v cf viz approx pp vols figs eqs cit ca circa esp incl excl resp est. aka "
        "a.k.a w/o attn c.f i.a n.b q.v no.s nos"
    ),
    may_end=_words(
        "etc inc ltd co corp plc llc bros jr snr assn assoc dept div govt univ inst mfg mfr mgmt mgr asst "
        "atty supt supv ave blvd rd rte ln hwy fwy expy pkwy pl plz sq ct ctr cres cir ter trl jct apt "
        "bldg bsmt fl rm addr jan feb apr jun jul aug sep sept oct nov dec tue tues weds thu thur thurs "
        "fri oz lb lbs yd yds ft in mi mph km kg mg cm mm ml tsp tbsp doz hr hrs min mins sec secs wks "
        "max avg misc tel ext temp al ed eds est ref refs cont ph.d phd m.d b.a m.a b.s m.s b.sc m.sc "
        "m.b.a ll.b ll.m d.d.s r.n esq u.s.a u.s.s.r u.a.e d.c l.a n.y n.j b.c a.d b.c.e c.e r.i.p p.s "
        "b.i.d t.i.d q.i.d p.r.n abbr admin acct appt amt bal qty wk yr yrs mo mos qtr alt elev ind intl "
        "natl org orig pop prev pub sci tech vac var gal dist dir pkg pkgs pmt mtg sched hdqrs svc hosp med "
        "cust rep dep ins presc pharm subj veh lic conf msg msgs "
        "addl dlvy mthly wkly yrly stmt appts accts addrs depts mgrs rms bldgs reps svcs "
        "pymt desc req reg exp a.s.a.p e.t.a f.y.i r.s.v.p "
        "inv ste std recd hgt wdth wt ht mktg maint mdse whse gov rev prof sgt capt lt col det insp hon"
    ),
    capitalised=_words(
        "mar mon wed sat sun ala ariz ark calif colo conn del fla ga ill kan ky la mass mich minn mont neb "
        "nev okla ore pa penn tenn tex va vt wash wis"
    ),
    numbered=_words("no p pg n n° nº № art ch chap eq ex fig op para sec vol"),
)

GERMAN = Abbreviations(
    titles=_words("dr prof hr fr frl st dipl ing mag"),
    never=_words(
        "z d u o s v a z.b d.h u.a v.a i.d.r o.ä s.o s.u vgl bzw ca evtl ggf inkl exkl"
        " max min sog zzgl abs art nr str bd"
    ),
    may_end=_words("usw etc u.s.w co ag jh jhd jan feb apr aug sept okt nov dez mio mrd std tel"),
    ordinal_stop=True,
)

FRENCH = Abbreviations(
    titles=_words("m mm mme mmes mlle mlles dr pr st ste me mgr"),
    never=_words("p.ex c.-à-d c.à.d cf env p pp art chap fig vol av apr"),
    may_end=_words("etc janv févr avr juil sept oct nov déc tél s.a cie"),
)

SPANISH = Abbreviations(
    titles=_words("sr sra srta sres dr dra d dña da prof profa ing lic gral cnel sto sta fr"),
    never=_words("p.ej ej pág págs núm art cap fig vol aprox avda av c vs ntra"),
    may_end=_words("etc ud uds vd vds ee.uu s.a s.l cía tel depto dpto a.m p.m"),
    numbered=_words("no n° nº"),
)

_LANGUAGES: Mapping[str, Abbreviations] = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH}


def abbreviations(language: str) -> Abbreviations:
    """The abbreviations of an ISO 639-1 code, region allowed (``en-GB``); English for any other."""
    return _LANGUAGES.get(language.split("-")[0].split("_")[0].lower(), ENGLISH)
