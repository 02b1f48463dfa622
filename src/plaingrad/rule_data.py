"""A rule as data: what is known about one callable, and the arguments that it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from plaingrad.class_keys import is_instance

WithDerivative = Literal["scalar", "linear", "bilinear", "full", "composed"]
Kind = (
    WithDerivative
    | Literal["no_tangent", "mover", "inspector", "higher_order", "outside", "asks", "withdrawn"]
)
Classes = tuple[type, ...] | None  # what one argument may be an instance of; None: anything


@dataclass(frozen=True, slots=True)
class Types:
    """The arguments that one variant of a rule is for.

    Attributes:
        names: the positional parameters.
        classes: what each may be an instance of.
        required: how many of them have no default.
        by_name: how many, from the last, may be given by name.
        rest: what further positional arguments may be; an empty tuple: there are none.
        keywords: the parameters given by name only, with their classes.
        required_keywords: those of them without default.
        any_keyword: further keyword arguments are taken.
        text: the parameters as they were written.
    """

    names: tuple[str, ...]
    classes: tuple[Classes, ...]
    required: int
    by_name: int
    rest: Classes
    keywords: tuple[tuple[str, Classes], ...]
    required_keywords: frozenset[str]
    any_keyword: bool
    text: str = field(compare=False)

    def fit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call with these arguments is one of those that are meant."""
        names, classes = self.names, self.classes
        given = len(args)
        if given > len(names) and self.rest == ():
            return False
        for k, x in enumerate(args):
            expected = classes[k] if k < len(names) else self.rest
            if expected is not None and not is_instance(x, expected):
                return False
        missing = set(names[given : self.required]) | self.required_keywords
        keywords = dict(self.keywords)
        for name, x in kwargs.items():
            if name in keywords:
                expected = keywords[name]
            elif name in names:
                k = names.index(name)
                if k < given or k < len(names) - self.by_name:
                    return False
                expected = classes[k]
            elif self.any_keyword:
                expected = None
            else:
                return False
            if expected is not None and not is_instance(x, expected):
                return False
            missing.discard(name)
        return not missing

    @property
    def length(self) -> int:
        """How many positional parameters there are; further ones count as many."""
        return len(self.names) + (0 if self.rest == () else 1000)

    def class_of(self, key: int | str) -> Classes:
        """What the argument at a position, or of a name, may be an instance of."""
        if isinstance(key, str):
            if key in self.names:
                key = self.names.index(key)
            else:
                return dict(self.keywords).get(key)
        return self.classes[key] if key < len(self.names) else self.rest


def narrower(a: Classes, b: Classes) -> bool:
    """Whether all that is an instance of `a` is one of `b`."""
    if b is None:
        return True
    return a is not None and all(issubclass(one, b) for one in a)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What is known about one callable.

    Attributes:
        function: the callable the rule is about; for a method, its descriptor (`np.ndarray.sum`).
        kind: how the rule was given; `composed` rules carry a Python definition in `rrule`'s place.
        rrule: `rrule(*args, **kwargs) -> (y, pullback)`; `pullback(y_bar)` has one entry per positional parameter.
        frule: `frule(*args, **kwargs) -> (y, pushforward)`; `pushforward(dots)` takes a tuple with one tangent per
            positional parameter (`ZeroTangent` for one that does not vary) and returns y_dot.
        chunked_frule: the same for tangents that carry a leading axis, one entry for each of a chunk.
        definition: for `composed` rules: the function in terms of simpler ones.
        partials: for `scalar` rules: dz/d(argument), a number or `partial(m, *args, z)`.
        domain: for `scalar` rules: where it is smooth, as a tuple of sample points for each argument.
        mutates: the function writes into its arguments, so it must be seen even when nothing is active.
        source: "file:line" of the row.
        affine: the pushforward depends on the arguments by their shapes, and by the piece of the function that they lie
            on, only: one and the same serves every Taylor coefficient. Always so for `linear` rules.
        dual: a user's forward rule in one step: `dual(args, dots, kwargs) -> (y, y_dot)`.
        names: the names of the positional parameters, where they are not those of `rrule` or `frule`.
        users: it was entered by the program, not by plaingrad.
        types: the arguments it is for; None: any.
        variants: the rules among which the types of the arguments decide; of this entry the other attributes are those
            of the variant for any arguments, if there is one.
        own: the rule is plaingrad's own code, which runs natively where no derivative is taken of it.
        refuses: why every call in which a derivative is needed is refused; empty: it is not.
        context: the `Context` in which alone it holds; None: everywhere.
        always: it is asked also where no argument depends on what is differentiated.
    """

    function: Any
    kind: Kind
    rrule: Callable[..., tuple[Any, Callable[..., Any]]] | None = None
    frule: Callable[..., tuple[Any, Callable[..., Any]]] | None = None
    chunked_frule: Callable[..., tuple[Any, Callable[..., Any]]] | None = None
    definition: Callable[..., Any] | None = None
    partials: tuple[Any, ...] = ()
    domain: Any = None
    mutates: bool = False
    affine: bool = False
    source: str = ""
    dual: Callable[..., tuple[Any, Any]] | None = None
    names: tuple[str, ...] = ()
    users: bool = False
    types: Types | None = None
    variants: tuple[Rule, ...] = ()
    own: bool = False
    refuses: str = ""
    context: Any = None
    always: bool = False

    def but(self, **values: Any) -> Rule:
        """This rule with other values of some attributes: `dataclasses.replace`, in a third of its time."""
        made = object.__new__(Rule)
        for name in Rule.__slots__:
            object.__setattr__(made, name, values[name] if name in values else getattr(self, name))
        made.__post_init__()
        return made

    def __post_init__(self) -> None:
        module = getattr(self.rrule or self.frule, "__module__", None)
        own = isinstance(module, str) and module.startswith("plaingrad.") and not self.users
        object.__setattr__(self, "own", own)

    @property
    def gives_derivative(self) -> bool:
        """Whether the rule says how derivatives pass through the function, in one mode at least."""
        return self.rrule is not None or self.frule is not None

    @property
    def may_pass(self) -> bool:
        """Whether a call may turn out to be one that the rule is not for: it declines, or is asked inside of itself."""
        return bool(self.variants) or (self.users and self.kind in ("full", "composed"))

    @property
    def name(self) -> str:
        """The callable's name, for messages."""
        return name_of(self.function)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the positional parameters."""
        if self.names:
            return self.names
        code = getattr(self.rrule or self.frule or self.definition, "__code__", None)
        return code.co_varnames[: code.co_argcount] if code is not None else ()


def name_of(function: Any) -> str:
    """How a callable is called in messages and lists."""
    return getattr(function, "__qualname__", None) or repr(function)
