"""The table of lines and columns of a code object, as CPython packs it (Objects/locations.md)."""

from functools import lru_cache

NO_LOCATION, NO_COLUMNS, LONG, ONE_LINE = 15, 13, 14, 10  # kinds of entries; 0 to 9 are short ones


def location_table(first_line: int, locations: list, words: list) -> bytes:
    """The table for instructions of `words[i]` code units at `locations[i]`: (line, end line, column, end column)."""
    table, last, size = bytearray(), first_line, 0
    if not locations:
        return b""
    place, nowhere = locations[0], (0, 0, 0, 0)  # no line has number 0
    for following, count in zip((*locations, nowhere), (*words, 0), strict=True):
        if following is place or following == place:
            size += count
            continue
        line, end_line, column, end_column = place
        if line is None:
            table += entries(size, None, 0, 0, 0)
        else:
            lines = -1 if end_line is None or column is None or end_column is None else end_line - line
            table += entries(size, line - last, lines, column, end_column)
            last = line
        place, size = following, count
    return bytes(table)


@lru_cache(maxsize=8192)
def entries(size, delta, lines, column, end_column) -> bytes:
    """The entries for `size` code units that begin `delta` lines below the last ones and end `lines` further below.

    `delta` None: the place is not known; `lines` negative: the columns are not.
    """
    found = bytearray()
    while size > 0:  # an entry takes 8 at most
        kind, rest = packed(delta, lines, column, end_column)
        found.append(0x80 | kind << 3 | min(size, 8) - 1)  # the only byte with its highest bit set
        found += rest
        delta = None if delta is None else 0
        size -= 8
    return bytes(found)


def packed(delta, lines, column, end_column):
    """The kind of an entry, and its bytes behind the first."""
    rest = bytearray()
    if delta is None:
        return NO_LOCATION, rest
    if lines < 0:
        signed(rest, delta)
        return NO_COLUMNS, rest
    if lines == 0 and delta == 0 and column < 80 and 0 <= end_column - column < 16:
        return column >> 3, bytes(((column & 7) << 4 | end_column - column,))
    if lines == 0 and 0 <= delta < 3 and column < 128 and end_column < 128:
        return ONE_LINE + delta, bytes((column, end_column))
    signed(rest, delta)
    for n in (lines, column + 1, end_column + 1):
        unsigned(rest, n)
    return LONG, rest


def unsigned(table, n):
    """Append n in groups of six bits, the lowest first."""
    while n > 63:
        table.append(0x40 | n & 63)
        n >>= 6
    table.append(n)


def signed(table, n):
    """Append n with its sign in the lowest bit."""
    unsigned(table, -n << 1 | 1 if n < 0 else n << 1)
