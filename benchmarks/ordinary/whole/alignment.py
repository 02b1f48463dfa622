"""Soft Smith-Waterman: the log-sum of all local alignments of two proteins, by dynamic programming in nested lists."""

from math import exp, log

FIRST, SECOND = "HEAGAWGHEE", "PAWHEAEGHW"
CLASSES = {"A": 0, "G": 0, "P": 0, "H": 1, "W": 2, "E": 3}
NEVER = -1e9


def soft_max(*scores, temperature):
    top = max(scores)
    return top + temperature * log(sum(exp((s - top) / temperature) for s in scores))


def scores(p):
    """A symmetric table of scores, from ten numbers."""
    table = [[0.0] * 4 for _ in range(4)]
    k = 0
    for i in range(4):
        for j in range(i, 4):
            table[i][j] = table[j][i] = p[k]
            k += 1
    return table


def align(a, b, table, opening, extending, temperature):
    rows, columns = len(a) + 1, len(b) + 1
    match = [[0.0] * columns for _ in range(rows)]
    gap_a = [[NEVER] * columns for _ in range(rows)]
    gap_b = [[NEVER] * columns for _ in range(rows)]
    ends = []
    for i in range(1, rows):
        for j in range(1, columns):
            pair = table[CLASSES[a[i - 1]]][CLASSES[b[j - 1]]]
            before = soft_max(
                0.0, match[i - 1][j - 1], gap_a[i - 1][j - 1], gap_b[i - 1][j - 1], temperature=temperature
            )
            match[i][j] = before + pair
            gap_a[i][j] = soft_max(
                match[i - 1][j] - opening, gap_a[i - 1][j] - extending, temperature=temperature
            )
            gap_b[i][j] = soft_max(
                match[i][j - 1] - opening, gap_b[i][j - 1] - extending, temperature=temperature
            )
            ends.append(match[i][j])
    return soft_max(*ends, temperature=temperature)


def main(p):
    table = scores(p)
    score = align(FIRST, SECOND, table, opening=p[10], extending=p[11], temperature=p[12])
    wrong = align(FIRST, SECOND[::-1], table, opening=p[10], extending=p[11], temperature=p[12])
    return score - 0.5 * wrong + 0.01 * sum(s * s for row in table for s in row)


X = [4.0, -2.1, -3.0, -0.9, 8.0, -2.9, 0.1, 11.0, -3.1, 5.0, 5.0, 1.0, 0.8]
