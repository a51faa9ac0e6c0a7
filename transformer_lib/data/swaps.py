"""Very short stories whose question needs two facts and a conclusion: chapter 8's task.

    mary has roses . they swapped . who has roses ?        susan
    mary has roses . they talked . who has roses ?         mary

Who has the roses now depends on who had them and on whether two people have swapped. Neither fact
alone says anything: of the stories that begin with *mary* half end with her. (Such a conclusion is
an *exclusive or*.) The stories are few, so that all of them can be asked.
"""

from itertools import product
from typing import NamedTuple

PEOPLE = ("mary", "susan")
GIFTS = ("roses", "books", "apples", "pens", "cups", "coins", "shells", "bells")
SWAPS = ("swapped", "traded", "switched")
OTHERS = ("talked", "waited", "danced")
EVENTS = SWAPS + OTHERS


class Story(NamedTuple):
    """A story of eleven words, the last of them ``?``.

    Attributes:
        text: its words, with spaces between them.
        first: who has the gift at first.
        swapped: whether the two have swapped.
        owner: who has it now: the answer.
    """

    text: str
    first: str
    swapped: bool
    owner: str


def stories() -> list[Story]:
    """All of them, in the order of PEOPLE, GIFTS and EVENTS, the last turning fastest.

    >>> len(stories())
    96
    >>> stories()[0]
    Story(text='mary has roses . they swapped . who has roses ?', first='mary', swapped=True, owner='susan')
    """  # noqa: E501
    found = []
    for first, gift, event in product(PEOPLE, GIFTS, EVENTS):
        swapped = event in SWAPS
        owner = PEOPLE[PEOPLE.index(first) ^ swapped]
        text = f"{first} has {gift} . they {event} . who has {gift} ?"
        found.append(Story(text, first, swapped, owner))
    return found


def vocabulary() -> list[str]:
    """All words of the stories, sorted: for a WordTokenizer.

    >>> " ".join(vocabulary()[:4])
    '. ? apples bells'
    """
    return sorted({word for story in stories() for word in story.text.split()})
