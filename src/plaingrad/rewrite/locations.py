"""The table of lines and columns of a code object, as CPython packs it (Objects/locations.md).

The packer of the `bytecode` package (0.19) writes columns from 128 to 255 as single bytes, which the readers that only
want lines take for the beginning of the next entry; so this is our own.
"""

NO_LOCATION, NO_COLUMNS, LONG, ONE_LINE = 15, 13, 14, 10  # kinds of entries; 0 to 9 are short ones


def location_table(first_line: int, locations: list, words: list) -> bytes:
    """The table for instructions of `words[i]` code units at `locations[i]`: (line, end line, column, end column)."""
    table, line, i = bytearray(), first_line, 0
    while i < len(locations):
        place, size = locations[i], 0
        while i < len(locations) and locations[i] == place:
            size += words[i]
            i += 1
        while size > 0:
            entry(table, min(size, 8), line, place)
            line = line if place[0] is None else place[0]
            size -= 8
    return bytes(table)


def entry(table, size, last_line, place):
    """Append the entry for `size` <= 8 code units at `place`, after code on `last_line`."""
    line, end_line, column, end_column = place
    if line is None:
        table.append(header(NO_LOCATION, size))
        return
    delta = line - last_line
    if None in place or end_line < line:
        table.append(header(NO_COLUMNS, size))
        signed(table, delta)
    elif end_line == line and delta == 0 and column < 80 and 0 <= end_column - column < 16:
        table += bytes((header(column >> 3, size), (column & 7) << 4 | end_column - column))
    elif end_line == line and 0 <= delta < 3 and column < 128 and end_column < 128:
        table += bytes((header(ONE_LINE + delta, size), column, end_column))
    else:
        table.append(header(LONG, size))
        signed(table, delta)
        for n in (end_line - line, column + 1, end_column + 1):
            unsigned(table, n)


def header(kind, size):
    """The first byte of an entry, the only one with its highest bit set."""
    return 0x80 | kind << 3 | size - 1


def unsigned(table, n):
    """Append n in groups of six bits, the lowest first."""
    while n > 63:
        table.append(0x40 | n & 63)
        n >>= 6
    table.append(n)


def signed(table, n):
    """Append n with its sign in the lowest bit."""
    unsigned(table, -n << 1 | 1 if n < 0 else n << 1)
