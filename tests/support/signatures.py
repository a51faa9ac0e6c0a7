"""Shapes and types in the library's signatures, checked at each call, in the tests only.

jaxtyping's own hook takes more time than the tests themselves: it binds all arguments by name at
every call, and compiles checks for a function within a function each time that one is defined. So
it gets the signatures that speak of shapes; for the others beartype does as well, alone.
"""

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import beartype
import jaxtyping

# An int will do where a float is asked for.
TYPES = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
TYPED = beartype.beartype(
    conf=beartype.BeartypeConf(is_pep484_tower=True, violation_type=jaxtyping.TypeCheckError)
)


def check(package: str) -> None:
    """From now on, what is imported of ``package`` checks its signatures."""
    of_shapes = jaxtyping.jaxtyped

    def checked(part=None, **options):
        if part is None:
            return functools.partial(checked, **options)
        if jaxtyping.config.jaxtyping_disable:  # a function within one that runs `unchecked`
            return part
        if inspect.isclass(part) or inspect.isgeneratorfunction(part):
            return of_shapes(part, **options)
        if any(map(has_shape, part.__annotations__.values())):
            return of_shapes(part, **options)
        return part if "<locals>" in part.__qualname__ else of_types(part)

    jaxtyping.jaxtyped = checked  # the name by which the hook calls it
    jaxtyping.install_import_hook(package, TYPES)


def has_shape(annotation: object) -> bool:
    """Whether a shape is part of an annotation: ``Float[Tensor, "rows"] | None``.

    (One that is a text is taken for such.)
    """
    if isinstance(annotation, str | list):
        return isinstance(annotation, str) or any(map(has_shape, annotation))
    if inspect.isclass(annotation) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    return any(map(has_shape, typing.get_args(annotation)))


def of_types(function: Callable) -> Callable:
    """A function whose types are checked, unless :func:`unchecked`."""
    checking = TYPED(function)

    @functools.wraps(function)
    def choose(*arguments, **options):
        return (function if jaxtyping.config.jaxtyping_disable else checking)(*arguments, **options)

    return choose


@contextmanager
def unchecked() -> Iterator[None]:
    """Within it, nothing is checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
