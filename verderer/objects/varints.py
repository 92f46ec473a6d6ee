"""Numbers of variable length (LEB128), for headers made mostly of small ones."""

from __future__ import annotations

_MAX_SHIFT = 63
"""Nine groups of seven bits: enough for an offset of eight exabytes, and an end to bad input."""
LIMIT = 1 << _MAX_SHIFT


def append_unsigned(out: bytearray, number: int) -> None:
    """Append `number`, seven bits a byte, the lowest first.

    Raises:
        ValueError: negative, or `LIMIT` or more.
    """
    if not 0 <= number < LIMIT:
        raise ValueError(f"{number} is not within 0 and 2^{_MAX_SHIFT}")
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def append_signed(out: bytearray, number: int) -> None:
    """Append a number of either sign; those near zero are short.

    Raises:
        ValueError: outside -2^62 to 2^62.
    """
    append_unsigned(out, number * 2 if number >= 0 else -number * 2 - 1)


class VarintReader:
    """Reads a header from front to back; every method raises `ValueError` on bad bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def ended(self) -> bool:
        """Whether everything was read."""
        return self._at == len(self._data)

    def unsigned(self) -> int:
        """The next number."""
        number = 0
        for shift in range(0, _MAX_SHIFT, 7):
            if self._at >= len(self._data):
                raise ValueError("its header ends too early")
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise ValueError("its header holds a number without end")

    def signed(self) -> int:
        """The next number of either sign."""
        number = self.unsigned()
        return number // 2 if number % 2 == 0 else -(number + 1) // 2

    def count(self) -> int:
        """The next number as a count of things, each of which takes two bytes or more."""
        number = self.unsigned()
        if number > (len(self._data) - self._at) // 2:
            raise ValueError("its header counts more than it holds")
        return number

    def raw(self, length: int, *, at_most: int) -> bytes:
        """The next `length` bytes."""
        if length > min(at_most, len(self._data) - self._at):
            raise ValueError("its header holds a text that is too long")
        taken = self._data[self._at : self._at + length]
        self._at += length
        return taken
