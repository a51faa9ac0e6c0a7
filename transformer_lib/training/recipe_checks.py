"""The checks of a recipe, whose values come from a command line or from a file."""

import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args, get_origin

from transformer_lib.training import files


def require_types(recipe) -> None:
    """Each field of ``recipe`` is of the type that its class says.

    Raises:
        TypeError: names the field, its value and the type.
    """
    hints = typing.get_type_hints(type(recipe))
    for field in fields(recipe):
        value, hint = getattr(recipe, field.name), hints[field.name]
        if not fits(value, hint):
            raise TypeError(
                f"{field.name} is {value!r}, of type {type(value).__name__}; it must be "
                f"{spelled(hint)}."
            )


def require_storable(recipe) -> None:
    """Each field of ``recipe`` can be written into a checkpoint, which is JSON in UTF-8.

    Raises:
        ValueError: names the field, its value and what is wrong with it: a number that is not
            finite, a text that is no Unicode, a value that JSON does not know.
    """
    for field in fields(recipe):
        value = getattr(recipe, field.name)
        try:
            files.canonical_json(dict(value) if isinstance(value, Mapping) else value)
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{field.name} is {value!r}, which is no valid Unicode, and a checkpoint could not "
                f"hold it. Rename the file, or write the text in UTF-8."
            ) from error
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{field.name} is {value!r}, which a checkpoint cannot hold ({error}). Use finite "
                f"numbers, texts, lists and dictionaries."
            ) from error


def require_seed(seed: int) -> None:
    """A seed that PyTorch's generators take."""
    if not -(2**63) <= seed < 2**63:
        raise ValueError(f"seed is {seed}; choose -2**63 <= seed < 2**63.")


def fits(value: Any, hint: Any) -> bool:
    """Whether ``value`` is of the type ``hint``; an int is good for a float, a bool for neither.

    >>> fits(1, float), fits(True, int), fits((1.0, 2.0), tuple[float, float])
    (True, False, True)
    """
    if isinstance(hint, types.UnionType):
        return any(fits(value, option) for option in get_args(hint))
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        alike = isinstance(value, tuple) and len(value) == len(parts)
        return alike and all(map(fits, value, parts))
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, hint)


def spelled(hint: Any) -> str:
    """A type in words.

    >>> spelled(int | None), spelled(tuple[float, float])
    ('an int or None', '2 numbers')
    """
    if isinstance(hint, types.UnionType):
        return " or ".join(spelled(option) for option in get_args(hint))
    if get_origin(hint) is tuple:
        return f"{len(get_args(hint))} numbers"
    if get_origin(hint) is Mapping:
        return "names with values, such as {'qk_norm': True}"
    known = {int: "an int", float: "a number", str: "a text", bool: "True or False"}
    return known.get(hint, "None")
