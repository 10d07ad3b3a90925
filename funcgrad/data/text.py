"""Text: tokens, and the integers that stand for them.

The one idea: a `Vocabulary` is an immutable list of tokens; the integer of a token is its place in
it. It can be written as JSON, and so be stored beside the model that was trained with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from funcgrad.errors import ArgumentError, describe, user_line

__all__ = ["Vocabulary", "split_characters", "split_words"]

_WORD = re.compile(r"<\w+>|\w+(?:['\u2019]\w+)*|[^\w\s]")


def split_words(text: str, lower: bool = False) -> list[str]:
    """Split a text into words and marks of punctuation.

    Parameters
    ----------
    text : str
        Any text.
    lower : bool, default False
        Whether to make all letters small.

    Returns
    -------
    list of str
        Words, with their inner apostrophes; each mark by itself; special tokens such as ``<eos>``
        in one piece.

    Examples
    --------
    >>> split_words("Don't stop, please.", lower=True)
    ["don't", 'stop', ',', 'please', '.']
    """
    return _WORD.findall(text.lower() if lower else text)


def split_characters(text: str) -> list[str]:
    """Split a text into its characters.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    list of str
        Strings of length 1: Unicode code points.

    Examples
    --------
    >>> split_characters("Oh!")
    ['O', 'h', '!']
    """
    return list(text)


_SPLITS = {"word": split_words, "character": split_characters}
_JOINTS = {"word": " ", "character": ""}


class Vocabulary:
    """Tokens and the integers that stand for them.

    Parameters
    ----------
    tokens : iterable of str
        In the order of their integers, none of them twice. `padding` and `unknown` are put in
        front of them, in this order, unless they are among them.
    level : {"word", "character"}, default "word"
        How `encode` splits a text, and `text` joins tokens.
    padding : str or None, default "<pad>"
        The token that fills up sequences.
    unknown : str or None, default "<unk>"
        The token that stands for those that the vocabulary has not; they are errors if it is None.

    Raises
    ------
    ArgumentError
        A token is no string, or is there twice; or the level is of another name.

    Examples
    --------
    >>> vocabulary = Vocabulary.from_text("the cat and the dog")
    >>> vocabulary.tokens
    ('<pad>', '<unk>', 'the', 'and', 'cat', 'dog')
    >>> vocabulary.encode("the dog and the bird")
    array([2, 5, 3, 2, 1])
    >>> vocabulary.text([4, 3, 5, 0, 0])
    'cat and dog'
    """

    __slots__ = ("_numbers", "level", "padding", "tokens", "unknown")

    _numbers: dict[str, int]
    level: str
    padding: str | None
    tokens: tuple[str, ...]
    unknown: str | None

    def __init__(
        self,
        tokens: Iterable[str],
        *,
        level: str = "word",
        padding: str | None = "<pad>",
        unknown: str | None = "<unk>",
    ) -> None:
        if level not in _SPLITS:
            raise ArgumentError(
                f"there is no level {level!r}",
                where=f"argument 'level' of Vocabulary() at {user_line()}",
                fix=f"give one of {sorted(_SPLITS)}",
            )
        given = list(tokens)
        front = [token for token in (padding, unknown) if token is not None and token not in given]
        numbers: dict[str, int] = {}
        for token in [*dict.fromkeys(front), *given]:
            if not isinstance(token, str) or token in numbers:
                raise ArgumentError(
                    f"a token is there twice: {token!r}"
                    if isinstance(token, str)
                    else f"a token is no string: {describe(token)}",
                    where=f"argument 'tokens' of Vocabulary() at {user_line()}",
                    fix="write Vocabulary.from_text(texts) to collect the tokens of texts",
                )
            numbers[token] = len(numbers)
        for name, value in zip(
            self.__slots__, (numbers, level, padding, tuple(numbers), unknown), strict=True
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Vocabulary does not change")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        return _from_state, (self.to_json(),)

    @classmethod
    def from_text(
        cls,
        text: str | Iterable[str] | Iterable[Sequence[str]],
        *,
        level: str = "word",
        max_size: int | None = None,
        min_count: int = 1,
        padding: str | None = "<pad>",
        unknown: str | None = "<unk>",
        special: Sequence[str] = (),
    ) -> Vocabulary:
        """Collect the tokens of texts, the most frequent ones first.

        Parameters
        ----------
        text : str, or iterable of str or of lists of tokens
            One text, or several, or texts that have been split already.
        level : {"word", "character"}, default "word"
            How to split texts.
        max_size : int, optional
            How many tokens the vocabulary has at most, with the special ones.
        min_count : int, default 1
            How often a token must be there.
        padding, unknown : str or None
            As for the class.
        special : sequence of str, optional
            Other tokens to have in any case, such as ``"<eos>"``; they come after these two.

        Returns
        -------
        Vocabulary
            Tokens that are equally frequent are in the order of their characters.

        Raises
        ------
        ArgumentError
            There are no tokens, or `max_size` has no room for the special ones.
        """
        if level not in _SPLITS:
            cls((), level=level)  # an error
        counts: Counter[str] = Counter()
        for part in [text] if isinstance(text, str) else text:
            counts.update(_SPLITS[level](part) if isinstance(part, str) else part)
        front = list(dict.fromkeys([t for t in (padding, unknown, *special) if t is not None]))
        ranked = sorted(counts.items(), key=_by_frequency)
        found = [token for token, count in ranked if count >= min_count and token not in front]
        room = None if max_size is None else max_size - len(front)
        if not counts or (room is not None and room < 0):
            raise ArgumentError(
                "there are no tokens in the text"
                if not counts
                else f"max_size={max_size} has no room for the special tokens {front}",
                where=f"Vocabulary.from_text() at {user_line()}",
                fix="give a text" if not counts else f"give at least {len(front)}",
            )
        return cls([*front, *found[:room]], level=level, padding=padding, unknown=unknown)

    def encode(self, text: str | Sequence[str]) -> NDArray[np.int64]:
        """Return the integers of a text.

        Parameters
        ----------
        text : str or sequence of str
            A text, which is split at the level of the vocabulary; or tokens.

        Returns
        -------
        ndarray of int64, shape (n,)
            One a token; that of `unknown` for those that are not in the vocabulary.

        Raises
        ------
        ArgumentError
            A token is not in the vocabulary, and `unknown` is None: it is named.
        """
        tokens = _SPLITS[self.level](text) if isinstance(text, str) else text
        numbers = self._numbers
        if self.unknown is None:
            for i, token in enumerate(tokens):
                if token not in numbers:
                    raise ArgumentError(
                        f"{token!r} is not in the vocabulary",
                        where=f"token {i} of the text, encoded at {user_line()}",
                        fix="make the vocabulary with unknown='<unk>', or of more text",
                    )
            return np.array([numbers[token] for token in tokens], np.int64)
        other = numbers[self.unknown]
        return np.array([numbers.get(token, other) for token in tokens], np.int64)

    def decode(self, numbers: ArrayLike) -> list[str]:
        """Return the tokens of integers.

        Parameters
        ----------
        numbers : array_like of int, shape (n,)
            Of this vocabulary.

        Returns
        -------
        list of str
            With those that are padding.

        Raises
        ------
        ArgumentError
            An integer is out of range: it is named.
        """
        found = []
        for i, number in enumerate(np.asarray(numbers).tolist()):
            if not isinstance(number, int) or not 0 <= number < len(self.tokens):
                raise ArgumentError(
                    f"{number!r} is no token of {len(self.tokens)}",
                    where=f"numbers[{i}] of Vocabulary.decode(), at {user_line()}",
                    fix=f"give a vector of ints from 0 to {len(self.tokens) - 1}",
                )
            found.append(self.tokens[number])
        return found

    def text(self, numbers: ArrayLike) -> str:
        """Return the text of integers, without padding.

        Parameters
        ----------
        numbers : array_like of int, shape (n,)
            Of this vocabulary.

        Returns
        -------
        str
            The tokens; at the level of words with spaces between them.

        Raises
        ------
        ArgumentError
            An integer is out of range: it is named.
        """
        tokens = [token for token in self.decode(numbers) if token != self.padding]
        return _JOINTS[self.level].join(tokens)

    def to_json(self) -> dict[str, Any]:
        """Return what ``json.dumps``, and `fg.save`, can store.

        Returns
        -------
        dict
            The tokens in order, and what the vocabulary was made with.
        """
        return {
            "tokens": list(self.tokens),
            "level": self.level,
            "padding": self.padding,
            "unknown": self.unknown,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Vocabulary:
        """Make a vocabulary of what `to_json` returned.

        Parameters
        ----------
        stored : dict
            As `to_json` returned it.

        Returns
        -------
        Vocabulary
            Equal to that one.

        Raises
        ------
        ArgumentError
            It is something else.
        """
        names = {"tokens", "level", "padding", "unknown"}
        if not isinstance(stored, Mapping) or set(stored) != names:
            raise ArgumentError(
                "this is no vocabulary",
                where=f"argument of Vocabulary.from_json() is {describe(stored)}, at {user_line()}",
                fix="give what vocabulary.to_json() returned",
            )
        return cls(**stored)

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._numbers

    def __getitem__(self, token: str) -> int:
        """Return the integer of a token."""
        return int(self.encode([token])[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.tokens, self.level, self.padding, self.unknown))

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self)} {self.level}s>"


def _from_state(stored: Mapping[str, Any]) -> Vocabulary:
    return Vocabulary.from_json(stored)


def _by_frequency(entry: tuple[str, int]) -> tuple[int, str]:
    token, count = entry
    return -count, token
