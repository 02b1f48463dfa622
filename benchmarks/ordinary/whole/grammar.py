"""A probabilistic grammar: inside probabilities by recursion with a memo in a dict, over sentences of words."""

import math

RULES = [
    ("S", ("NP", "VP")),
    ("NP", ("Det", "N")),
    ("NP", ("NP", "PP")),
    ("VP", ("V", "NP")),
    ("VP", ("VP", "PP")),
    ("PP", ("P", "NP")),
    ("NP", ("Det", "NN")),
    ("NN", ("N", "N")),
]
WORDS = {
    "the": {"Det"}, "a": {"Det"}, "dog": {"N", "V"}, "park": {"N", "V"}, "cat": {"N"}, "saw": {"V", "N"},
    "walks": {"V", "N"}, "with": {"P"}, "in": {"P"}, "near": {"P"}, "telescope": {"N"},
}  # fmt: skip
SENTENCES = [
    "the dog saw a cat in the park with a telescope",
    "a cat walks the dog near the park",
    "the park dog saw the cat",
]


class Grammar:
    def __init__(self, weights, word_weights):
        totals = {}
        for (head, _), w in zip(RULES, weights):
            totals[head] = totals.get(head, 0.0) + math.exp(w)
        self.rules = {}
        for (head, body), w in zip(RULES, weights):
            self.rules.setdefault(head, []).append((body, math.exp(w) / totals[head]))
        kinds = sorted({kind for found in WORDS.values() for kind in found})
        self.words = {}
        sums = dict.fromkeys(kinds, 0.0)
        for k, (word, found) in enumerate(WORDS.items()):
            for kind in sorted(found):
                weight = math.exp(word_weights[k % len(word_weights)] * (1 + 0.1 * len(word)))
                self.words[word, kind] = weight
                sums[kind] += weight
        for word, kind in self.words:
            self.words[word, kind] /= sums[kind]

    def inside(self, words):
        memo = {}

        def probability(kind, i, j):
            key = kind, i, j
            if key in memo:
                return memo[key]
            if j - i == 1:
                found = self.words.get((words[i], kind), 0.0)
            else:
                found = 0.0
                for (left, right), p in self.rules.get(kind, ()):
                    for k in range(i + 1, j):
                        before = probability(left, i, k)
                        if before == 0.0:
                            continue
                        found += p * before * probability(right, k, j)
            memo[key] = found
            return found

        return probability("S", 0, len(words))


def main(p):
    grammar = Grammar(p[: len(RULES)], p[len(RULES) :])
    return -sum(math.log(grammar.inside(sentence.split())) for sentence in SENTENCES)


X = [0.1, 0.5, -0.2, 0.3, -0.4, 0.2, -0.6, 0.1, -0.1, 0.2, 0.05]
