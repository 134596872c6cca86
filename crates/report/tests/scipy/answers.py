#!/usr/bin/env python3
"""What SciPy and NumPy say of small cases: the known answers of `statistics/tests.rs`.

Prints `answers.json`; with `--check FILE`, recomputes all of them and prints which differ. Needs scipy and numpy.
"""
import argparse
import json
import sys

import numpy as np
from scipy import optimize, stats

Z = stats.norm.ppf(0.975)


def sample(seed, count, median, sigma, unfinished=0):
    """Times in ms, some of which never came (null)."""
    rng = np.random.default_rng(seed)
    values = np.maximum(1, np.rint(median * np.exp(sigma * rng.standard_normal(count)))).astype(int)
    return [int(value) for value in values] + [None] * unfinished


def infinite(values):
    return np.array([np.inf if value is None else float(value) for value in values])


def finished(values):
    return np.array([float(value) for value in values if value is not None])


def mann_whitney(a, b):
    # Both sides infinite tie: ranks know it, differences would not.
    a, b = (np.where(np.isinf(x), 1e15, x) for x in (infinite(a), infinite(b)))
    result = stats.mannwhitneyu(a, b, alternative="two-sided", method="asymptotic", use_continuity=False)
    return {"p": result.pvalue, "share_less": 1 - result.statistic / (len(a) * len(b))}


def wilcoxon(a, b):
    with np.errstate(divide="ignore"):
        ratio = np.log(infinite(a) / infinite(b)).round(12)
    result = stats.wilcoxon(ratio, zero_method="wilcox", correction=False, method="asymptotic")
    return {"p": result.pvalue, "share_less": float(np.mean(ratio < 0) + np.mean(ratio == 0) / 2)}


def fieller(ratio, distance):
    # From the definition: the ratios at which the distance of the means, in standard deviations, is Z. No end is null.
    def far(factor):
        return distance(ratio * factor) - Z

    low = optimize.brentq(far, 1e-9, 1, xtol=1e-15, rtol=1e-14) if far(1e-9) > 0 else 0
    high = optimize.brentq(far, 1, 1e9, xtol=1e-15, rtol=1e-14) if far(1e9) > 0 else None
    return [ratio - 1, ratio * low - 1, high and ratio * high - 1]


def mean_change(a, b):
    a, b = finished(a), finished(b)

    def distance(ratio):
        variance = a.var(ddof=1) / len(a) + ratio**2 * b.var(ddof=1) / len(b)
        return abs(a.mean() - ratio * b.mean()) / np.sqrt(variance)

    return fieller(a.mean() / b.mean(), distance)


def mean_change_paired(a, b):
    both = [(x, y) for x, y in zip(a, b) if x is not None and y is not None]
    a, b = np.array(both, dtype=float).T

    def distance(ratio):
        rest = a - ratio * b
        return abs(rest.mean()) / np.sqrt(rest.var(ddof=1) / len(rest))

    return fieller(a.mean() / b.mean(), distance)


def mean_difference(a, b):
    a, b = finished(a), finished(b)
    half = Z * np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    value = a.mean() - b.mean()
    return [value, value - half, value + half]


def wilson(count, total):
    interval = stats.binomtest(count, total).proportion_ci(0.95, method="wilson")
    return [count / total, interval.low, interval.high]


def newcombe(x1, n1, x2, n2):
    (p1, l1, u1), (p2, l2, u2) = wilson(x1, n1), wilson(x2, n2)
    d = p1 - p2
    return [d, d - np.hypot(p1 - l1, u2 - p2), d + np.hypot(u1 - p1, p2 - l2)]


def holm(p):
    # From the definition: the largest, over the tests not less significant, of p times the number of those left.
    order = np.argsort(p, kind="stable")
    out = np.empty(len(p))
    for place, index in enumerate(order):
        out[index] = min(1.0, max(p[order[k]] * (len(p) - k) for k in range(place + 1)))
    return list(out)


def answers():
    cases = []
    shapes = [
        (1, 5, 100, 0.3, 0, 7, 100, 0.3, 0),
        (2, 40, 300, 0.8, 1, 50, 300, 0.8, 0),
        (3, 200, 250, 0.7, 3, 210, 300, 0.7, 5),
        (4, 30, 4, 0.4, 0, 30, 4, 0.4, 0),
        (5, 1000, 400, 1.0, 10, 900, 380, 1.0, 2),
        # Means that a few values decide: wide intervals, and such without an upper end.
        (6, 24, 300, 2.2, 0, 30, 300, 2.2, 1),
        (7, 6, 300, 2.5, 0, 7, 300, 2.5, 0),
    ]
    for seed, n, median, sigma, lost, m, other, spread, gone in shapes:
        a, b = sample(seed, n, median, sigma, lost), sample(seed + 100, m, other, spread, gone)
        shares = [0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
        with np.errstate(invalid="ignore"):
            nearest = [float(np.quantile(infinite(a), share, method="inverted_cdf")) for share in shares]
        pairs = min(len(a), len(b))
        c, d = a[:pairs], b[:pairs]
        cases.append(
            {
                "a": a,
                "b": b,
                "shares": shares,
                "percentiles": [None if np.isinf(value) else value for value in nearest],
                "mean": finished(a).mean(),
                "variance": finished(a).var(ddof=1),
                "mann_whitney": mann_whitney(a, b),
                "wilcoxon": wilcoxon(c, d),
                "mean_change": mean_change(a, b),
                "mean_change_paired": mean_change_paired(c, d),
                "mean_difference": mean_difference(a, b),
            }
        )
    ratios = [([100, 110], [1, 1]), ([5000, 4900, 5100, 5050], [1, 1, 1, 1]), ([9100, 900], [9, 1]), ([3, 0, 9], [1, 1, 1]), ([1, 900], [1, 1])]
    many = [(list(np.random.default_rng(k).integers(900, 1100, k)), [1] * k) for k in (2, 3, 7, 16, 60)]
    chi = []
    for counts, shares in ratios + many:
        counts = [int(count) for count in counts]
        expected = np.array(shares) / sum(shares) * sum(counts)
        result = stats.chisquare(counts, expected)
        chi.append({"counts": counts, "shares": shares, "statistic": result.statistic, "p": result.pvalue})
    shares = [(0, 10), (10, 10), (3, 7), (995, 1000), (5000, 5003)]
    p = [0.01, 0.04, 0.03, 0.005, 0.5, 0.04, 1e-9, 0.9]
    return {
        "cases": cases,
        "chi_squared": chi,
        "wilson": [{"count": x, "total": n, "answer": wilson(x, n)} for x, n in shares],
        "newcombe": [
            {"first": [x1, n1], "second": [x2, n2], "answer": newcombe(x1, n1, x2, n2)}
            for x1, n1, x2, n2 in [(56, 70, 48, 80), (9, 10, 3, 10), (995, 1000, 990, 1000), (10, 10, 20, 20)]
        ],
        "holm": {"p": p, "answer": holm(p)},
    }


def same(one, other, path, wrong):
    if isinstance(one, dict):
        for key in sorted(set(one) | set(other)):
            same(one.get(key), other.get(key), f"{path}.{key}", wrong)
    elif isinstance(one, list):
        if not isinstance(other, list) or len(one) != len(other):
            wrong.append(path)
            return
        for place, (x, y) in enumerate(zip(one, other)):
            same(x, y, f"{path}[{place}]", wrong)
    elif isinstance(one, float) or isinstance(other, float):
        if one is None or other is None or abs(one - other) > 1e-9 * max(1e-12, abs(one), abs(other)):
            wrong.append(f"{path}: {one} is not {other}")
    elif one != other:
        wrong.append(f"{path}: {one} is not {other}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", metavar="FILE")
    arguments = parser.parse_args()
    text = json.dumps(answers(), default=float)
    if not arguments.check:
        print(text)
        return
    wrong = []
    with open(arguments.check, encoding="utf-8") as file:
        same(json.load(file), json.loads(text), "answers", wrong)
    if wrong:
        sys.exit("SciPy says otherwise:\n" + "\n".join(wrong[:20]))
    print("SciPy agrees with all answers")


if __name__ == "__main__":
    main()
