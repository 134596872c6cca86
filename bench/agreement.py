"""How two lists of times of the same pages agree: rank correlation with its interval, and ratios. For `bench/pages`."""

import math
import random
import statistics

RESAMPLES = 2000


def check(pairs):
    """Pairs of times: positive and finite numbers."""
    for number, pair in enumerate(pairs):
        times = tuple(pair)
        is_valid = len(times) == 2 and all(
            isinstance(it, (int, float)) and not isinstance(it, bool) and math.isfinite(it) and it > 0 for it in times)
        if not is_valid:
            raise ValueError(f"pair {number}: {pair!r} (expected two positive numbers)")


def ranks(values):
    """Ranks from 0 on, of which equal values have the mean."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, at = [0.0] * len(values), 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for place in range(at, end + 1):
            found[order[place]] = (at + end) / 2
        at = end + 1
    return found


def spearman(pairs):
    """Rank correlation: Pearson's of the ranks. None for fewer than two pairs, and if all values of a side are equal."""
    left, right = ranks([pair[0] for pair in pairs]), ranks([pair[1] for pair in pairs])
    mean = (len(pairs) - 1) / 2
    over = math.sqrt(sum((it - mean) ** 2 for it in left) * sum((it - mean) ** 2 for it in right))
    return sum((a - mean) * (b - mean) for a, b in zip(left, right)) / over if over else None


def interval(pairs, statistic, count=RESAMPLES, seed=1):
    """The 95 % percentile interval of a statistic by bootstrap, resampling pairs. Samples without a value are left out; none if
    there are no others."""
    if not pairs or count < 1:
        raise ValueError(f"{len(pairs)} pairs, {count} samples (expected at least one of each)")
    dice = random.Random(seed)
    found = [statistic([dice.choice(pairs) for _ in pairs]) for _ in range(count)]
    found = sorted(value for value in found if value is not None)
    return (found[len(found) * 25 // 1000], found[len(found) * 975 // 1000]) if found else None


def percentile(ordered, share, rounded):
    """The value at a share of a sorted list, at the place that `rounded` gives: `math.floor` or `math.ceil`."""
    return ordered[rounded(share * (len(ordered) - 1))]


def agreement(pairs):
    """Rank correlation of the pairs and its interval, from three pairs on, and the ratio of the first to the second: median, 5th and
    95th percentile. None without pairs."""
    check(pairs)
    if not pairs:
        return None
    rho = spearman(pairs) if len(pairs) > 2 else None
    ratios = sorted(left / right for left, right in pairs)
    return {"pages": len(pairs), "spearman": rho, "spearman_ci95": None if rho is None else interval(pairs, spearman),
            "ratio": statistics.median(ratios), "p5": percentile(ratios, 0.05, math.floor),
            "p95": percentile(ratios, 0.95, math.ceil)}


def shown(found):
    """An agreement as two cells of a table: rank correlation, and ratio."""
    if not found:
        return "–", "–"
    rho = "–"
    if found["spearman"] is not None:
        low, high = found["spearman_ci95"]
        rho = f"{found['spearman']:.2f} ({low:.2f} to {high:.2f})"
    return rho, f"{found['ratio']:.2f} ({found['p5']:.2f} to {found['p95']:.2f})"
