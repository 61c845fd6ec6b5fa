"""The words of the controlled corpus, with all forms that no rule produces.

kinds: one letter for each class of a noun; they determine which words it can be combined with.
    p person   a animal   t thing   l place   f food   r can be written   d can be switched on
    o can be opened
    h can be carried   k can have "my"   g can be old   y can be young
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

Case = Literal["nominative", "accusative", "dative"]
Pattern = Literal["alone", "accusative", "dative", "both", "clause"]


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun: its forms in both languages, its gender (m, f, n), its kinds.

    weak: whether every singular case except the nominative has the form of the plural
        (n-declension).
    """

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    kinds: str
    weak: bool = False

    @property
    def person(self) -> bool:
        """Check whether its relative pronoun is "who"; that of all other nouns is "that"."""
        return "p" in self.kinds


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb: its forms in both languages, and the kinds of its subjects and objects.

    particle: English, "up" in "pick up".
    prefix: German and separable, "an" in "anrufen".
    pattern: the case of its object; `both` for verbs of giving, `clause` for verbs of saying,
        `alone` without object.
    auxiliary: of its German perfect, haben or sein.
    """

    base: str
    third: str
    past: str
    participle: str
    particle: str
    plural: str
    singular: str
    preterite: str
    perfect: str
    prefix: str
    auxiliary: str
    pattern: Pattern
    subjects: str
    objects: str

    @property
    def name(self) -> str:
        """The unique name of this verb."""
        return f"{self.base} {self.particle}".strip()


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective: English, the German stem, the kinds of nouns that it can describe."""

    english: str
    german: str
    kinds: str


@dataclass(frozen=True, eq=False)
class Preposition:
    """A preposition: its German case, the kinds of nouns before it (none: it modifies verbs) and
    after it."""

    english: str
    german: str
    case: Case
    before: str
    after: str


_NOUNS = """
boy boys Junge Jungen m p weak
girl girls Mädchen Mädchen n py
man men Mann Männer m pgy
woman women Frau Frauen f pgy
child children Kind Kinder n pyk
teacher teachers Lehrer Lehrer m pgyk
student students Student Studenten m pgyk weak
neighbour neighbours Nachbar Nachbarn m pgyk weak
doctor doctors Arzt Ärzte m pgyk
aunt aunts Tante Tanten f pgyk
sister sisters Schwester Schwestern f pgyk
queen queens Königin Königinnen f pgy
prince princes Prinz Prinzen m pgy weak
dog dogs Hund Hunde m ak
cat cats Katze Katzen f ak
horse horses Pferd Pferde n ak
bird birds Vogel Vögel m ak
bear bears Bär Bären m a weak
cow cows Kuh Kühe f ak
book books Buch Bücher n trohk
letter letters Brief Briefe m trhk
apple apples Apfel Äpfel m tfhk
cake cakes Kuchen Kuchen m tfhk
flower flowers Blume Blumen f thk
car cars Auto Autos n tk
lamp lamps Lampe Lampen f tdhk
radio radios Radio Radios n tdhk
door doors Tür Türen f to
window windows Fenster Fenster n to
garden gardens Garten Gärten m lk
house houses Haus Häuser n lk
forest forests Wald Wälder m l
city cities Stadt Städte f l
"""

_VERBS = """
sleep sleeps slept slept - | schlafen schläft schlief geschlafen - haben | alone pa -
sing sings sang sung - | singen singt sang gesungen - haben | alone p -
laugh laughs laughed laughed - | lachen lacht lachte gelacht - haben | alone p -
wait waits waited waited - | warten wartet wartete gewartet - haben | alone pa -
run runs ran run - | laufen läuft lief gelaufen - sein | alone pa -
walk walks walked walked - | gehen geht ging gegangen - sein | alone pa -
stand stands stood stood up | stehen steht stand gestanden auf sein | alone pa -
arrive arrives arrived arrived - | kommen kommt kam gekommen an sein | alone pa -
see sees saw seen - | sehen sieht sah gesehen - haben | accusative pa pat
hear hears heard heard - | hören hört hörte gehört - haben | accusative pa pa
love loves loved loved - | lieben liebt liebte geliebt - haben | accusative p pa
find finds found found - | finden findet fand gefunden - haben | accusative pa pat
visit visits visited visited - | besuchen besucht besuchte besucht - haben | accusative p p
carry carries carried carried - | tragen trägt trug getragen - haben | accusative p h
buy buys bought bought - | kaufen kauft kaufte gekauft - haben | accusative p at
write writes wrote written - | schreiben schreibt schrieb geschrieben - haben | accusative p r
eat eats ate eaten - | essen isst aß gegessen - haben | accusative p f
call calls called called - | rufen ruft rief gerufen an haben | accusative p p
invite invites invited invited - | laden lädt lud geladen ein haben | accusative p p
pick picks picked picked up | holen holt holte geholt ab haben | accusative p par
turn turns turned turned on | schalten schaltet schaltete geschaltet ein haben | accusative p d
turn turns turned turned off | schalten schaltet schaltete geschaltet aus haben | accusative p d
open opens opened opened - | machen macht machte gemacht auf haben | accusative p o
close closes closed closed - | machen macht machte gemacht zu haben | accusative p o
help helps helped helped - | helfen hilft half geholfen - haben | dative p pa
thank thanks thanked thanked - | danken dankt dankte gedankt - haben | dative p p
follow follows followed followed - | folgen folgt folgte gefolgt - sein | dative pa pa
answer answers answered answered - | antworten antwortet antwortete geantwortet - haben | dative p p
give gives gave given - | geben gibt gab gegeben - haben | both p h
show shows showed shown - | zeigen zeigt zeigte gezeigt - haben | both p at
say says said said - | sagen sagt sagte gesagt - haben | clause p -
know knows knew known - | wissen weiß wusste gewusst - haben | clause p -
hope hopes hoped hoped - | hoffen hofft hoffte gehofft - haben | clause p -
"""

_ADJECTIVES = """
old alt gatl
young jung ya
small klein patl
big groß patl
happy glücklich pa
hungry hungrig pa
new neu tl
red rot t
"""

_PREPOSITIONS = """
next_to neben dative patl patl
behind hinter dative patl patl
near bei dative patl patl
with mit dative pa pah
without ohne accusative p pah
for für accusative t p
in in dative - l
through durch accusative - l
"""


def _rows(table: str) -> list[list[Any]]:
    """Read the cells of each row: `-` is empty, `_` is a blank, and `|` separates the languages."""
    rows = (line.replace("|", "").split() for line in table.strip().splitlines())
    return [[cell.replace("_", " ").replace("-", "") for cell in row] for row in rows]


NOUNS = [Noun(*row[:6], weak=row[6:] == ["weak"]) for row in _rows(_NOUNS)]
VERBS = [Verb(*row) for row in _rows(_VERBS)]
ADJECTIVES = [Adjective(*row) for row in _rows(_ADJECTIVES)]
PREPOSITIONS = [Preposition(*row) for row in _rows(_PREPOSITIONS)]
CONJUNCTIONS = {
    "that": "dass",
    "because": "weil",
    "although": "obwohl",
    "while": "während",
    "before": "bevor",
    "if": "wenn",
}
ADVERBS = {"then": "dann", "sometimes": "manchmal"}

_SYLLABLES = ("ba Ti", "do Ne", "fi Lu", "ga Mo", "ho Re", "ju Sa", "ke Wi", "lo Pa", "mi Du")
"""Beginnings of further nouns: English, German."""


@cache
def nouns(times: int) -> list[Noun]:
    """List the usual nouns this many times: these, and invented ones declined like them."""
    others = [
        replace(
            noun,
            english=first + noun.english,
            english_plural=first + noun.english_plural,
            german=second + noun.german.lower(),
            german_plural=second + noun.german_plural.lower(),
        )
        for first, second in map(str.split, _SYLLABLES[: times - 1])
        for noun in NOUNS
    ]
    return NOUNS + others


PREPOSITION = {preposition.english: preposition for preposition in PREPOSITIONS}
