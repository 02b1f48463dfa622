"""A small bank's books: loans with dates, payments posted to accounts in dicts, their value under a curve of rates."""

import math
from collections import defaultdict
from datetime import date, timedelta

TODAY = date(2024, 3, 31)
LOANS = [
    {"id": "A1", "start": date(2023, 6, 15), "months": 36, "amount": 12_000.0, "grade": "prime"},
    {"id": "A2", "start": date(2022, 11, 1), "months": 48, "amount": 30_500.0, "grade": "prime"},
    {"id": "B1", "start": date(2024, 1, 20), "months": 24, "amount": 5_000.0, "grade": "middle"},
    {"id": "B2", "start": date(2023, 2, 28), "months": 60, "amount": 18_250.0, "grade": "middle"},
    {"id": "C1", "start": date(2023, 12, 5), "months": 12, "amount": 2_400.0, "grade": "weak"},
]
TENORS = [0.25, 1.0, 2.0, 5.0]


def add_months(day, months):
    year, month = divmod(day.month - 1 + months, 12)
    year += day.year
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))


def annuity(amount, rate, months):
    monthly = rate / 12
    return amount * monthly / (1 - (1 + monthly) ** -months)


def schedule(loan, margin):
    """Yields (day, interest, principal)."""
    rate = 0.03 + margin[loan["grade"]]
    payment = annuity(loan["amount"], rate, loan["months"])
    left, before = loan["amount"], loan["start"]
    for k in range(1, loan["months"] + 1):
        day = add_months(loan["start"], k)
        interest = left * rate * (day - before).days / 365
        principal = payment - interest if k < loan["months"] else left
        left -= principal
        before = day
        yield day, interest, principal


def discount(rates, day):
    """From rates at TENORS, interpolated."""
    t = (day - TODAY).days / 365
    if t <= TENORS[0]:
        rate = rates[0]
    elif t >= TENORS[-1]:
        rate = rates[-1]
    else:
        k = next(k for k, tenor in enumerate(TENORS) if tenor > t)
        w = (t - TENORS[k - 1]) / (TENORS[k] - TENORS[k - 1])
        rate = (1 - w) * rates[k - 1] + w * rates[k]
    return math.exp(-rate * t)


class Ledger:
    def __init__(self):
        self.accounts = defaultdict(float)
        self.postings = []

    def post(self, day, debit, credit, amount):
        self.accounts[debit] += amount
        self.accounts[credit] -= amount
        self.postings.append((day, debit, credit, amount))

    def check(self):
        if abs(sum(self.accounts.values())) > 1e-6:
            raise ValueError("the books do not balance")


def main(p):
    rates, margins, default = p[:4], p[4:7], p[7]
    margin = dict(zip(("prime", "middle", "weak"), margins))
    books, value = Ledger(), 0.0
    for loan in sorted(LOANS, key=lambda loan: loan["start"]):
        books.post(loan["start"], f"loan:{loan['id']}", "cash", loan["amount"])
        for day, interest, principal in schedule(loan, margin):
            books.post(day, "cash", f"loan:{loan['id']}", principal)
            books.post(day, "cash", "interest", interest)
            if day > TODAY:
                alive = math.exp(
                    -default * (day - TODAY).days / 365 * (2.0 if loan["grade"] == "weak" else 1.0)
                )
                value += (interest + principal) * alive * discount(rates, day)
    books.check()
    late = [amount for day, debit, _, amount in books.postings if debit == "cash" and day > date(2026, 1, 1)]
    return (value + 0.1 * sum(late) + books.accounts["interest"]) / 10_000


X = [0.03, 0.032, 0.035, 0.04, 0.01, 0.025, 0.06, 0.02]
