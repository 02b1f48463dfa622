"""The table of original and rewritten instructions."""

from plaingrad.rewrite import describe, rewritten


def sample(x, y):
    if x > y.k:
        return [a + 1 for a in x]
    y.z = x.foo(*y)


def test_every_original_instruction_has_its_row():
    table = describe(sample.__code__)
    rows = table.splitlines()
    assert rows[0].startswith("sample (")
    assert rows[1].split() == ["line", "original", "rewritten"]
    first = str(sample.__code__.co_firstlineno)
    assert any(row.split()[:3] == [first, "0", "RESUME"] for row in rows)


def test_hooks_stand_beside_what_they_replace():
    rows = describe(sample.__code__).splitlines()
    at = next(i for i, row in enumerate(rows) if "COMPARE_OP" in row)
    assert ".level" in rows[at]
    assert "gt" in rows[at + 1]


def test_the_second_column_is_aligned():
    rows = describe(sample.__code__).splitlines()[1:]
    column = rows[0].index("rewritten")
    assert all(len(row) <= column or row[column - 2 : column] == "  " for row in rows)


def test_jumps_name_rows():
    rows = describe(sample.__code__).splitlines()
    jump = next(row for row in rows if "JUMP" in row and " to " in row)
    assert jump.count(" to ") >= 1


def test_rewritten_code_is_described_by_its_original():
    assert describe(rewritten(sample.__code__)) == describe(sample.__code__)
