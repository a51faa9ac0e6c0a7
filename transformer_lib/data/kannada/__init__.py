"""Kannada: sentences and their English translation, with the true alignment of their words.

``grammar`` divides and draws them, ``meaning`` writes them, ``reading`` says why a text is none of
them, ``words`` has the forms and their sources, and ``script`` transliterates.
"""

from .grammar import KannadaGrammar
from .meaning import Sentence
from .script import to_latin, to_script

__all__ = ["KannadaGrammar", "Sentence", "to_latin", "to_script"]
