"""Tests of `bench/pages`: its statistics, and what it says of bad input. `.ci/python` runs them."""

import importlib.machinery
import importlib.util
import json
import math
import pathlib
import random
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH))

from agreement import agreement, interval, ranks, shown, spearman  # noqa: E402


def test_equal_values_have_the_mean_of_their_ranks():
    assert ranks([]) == []
    assert ranks([7]) == [0]
    assert ranks([30, 10, 20]) == [2, 0, 1]
    assert ranks([5, 1, 5, 5, 9]) == [2, 0, 2, 2, 4]
    assert ranks([4, 4, 2, 2]) == [2.5, 2.5, 0.5, 0.5]


# Without ties: 1 - 6 Σd² / n(n² - 1). With ties: `scipy.stats.spearmanr`.
@pytest.mark.parametrize("pairs, expected", [
    ([(1, 10), (2, 200), (3, 3000)], 1),
    ([(1, 3), (2, 2), (3, 1)], -1),
    # Σd² = 8, n = 5
    ([(1, 2), (2, 1), (3, 4), (4, 3), (5, 5)], 1 - 6 * 4 / (5 * 24)),
    ([(106, 7), (100, 27), (86, 2), (101, 50), (99, 28), (103, 29), (97, 20), (113, 12), (112, 6), (110, 17)], -29 / 165),
    ([(1, 5), (2, 6), (3, 7), (4, 8), (5, 7)], 0.8207826816681233),
    ([(1, 1), (1, 2), (2, 2), (2, 1)], 0),
])
def test_known_rank_correlations(pairs, expected):
    assert spearman(pairs) == pytest.approx(expected, abs=1e-12)
    assert spearman([(right, left) for left, right in pairs]) == pytest.approx(expected, abs=1e-12)


def test_a_side_that_is_constant_has_no_rank_correlation():
    assert spearman([(1, 5), (2, 5), (3, 5)]) is None
    assert spearman([(1, 5)]) is None
    assert spearman([]) is None
    found = agreement([(1, 5), (2, 5), (4, 5)])
    assert found["spearman"] is None and found["spearman_ci95"] is None
    assert found["ratio"] == 0.4
    assert shown(found) == ("–", "0.40 (0.20 to 0.80)")


def test_only_the_order_counts_for_the_rank_correlation():
    dice = random.Random(3)
    pairs = [(dice.random(), dice.random()) for _ in range(40)]
    moved = [(math.exp(left), right ** 3) for left, right in pairs]
    assert spearman(pairs) == pytest.approx(spearman(moved), abs=1e-12)


def test_the_interval_is_that_of_the_resampled_pairs():
    # The mean of 400 values between 0 and 1: normal, with the standard error √(1/12/400).
    dice = random.Random(5)
    pairs = [(dice.random(), 1) for _ in range(400)]

    def mean(sample):
        return sum(left for left, _ in sample) / len(sample)

    low, high = interval(pairs, mean)
    width = 2 * 1.96 * math.sqrt(1 / 12 / 400)
    assert low < mean(pairs) < high
    assert high - low == pytest.approx(width, rel=0.1)
    assert interval(pairs, mean) == (low, high), "the same each time"
    assert interval(pairs, mean, seed=2) != (low, high)


def test_an_interval_leaves_out_samples_without_a_value():
    # A sample of two equal pairs has no rank correlation; all others have 1.
    assert interval([(1, 1), (2, 2)], spearman) == (1, 1)
    assert interval([(1, 1), (1, 2)], spearman) is None
    for pairs, count in (([], 10), ([(1, 1)], 0)):
        with pytest.raises(ValueError, match="expected at least one of each"):
            interval(pairs, spearman, count)


def test_an_agreement_has_the_median_and_the_percentiles_of_the_ratios():
    pairs = [(number * number, 10 * number) for number in range(1, 22)]
    found = agreement(pairs)
    assert (found["pages"], found["spearman"], found["spearman_ci95"]) == (21, pytest.approx(1), (pytest.approx(1), pytest.approx(1)))
    assert (found["p5"], found["ratio"], found["p95"]) == (0.2, 1.1, 2.0)
    assert shown(found) == ("1.00 (1.00 to 1.00)", "1.10 (0.20 to 2.00)")
    assert agreement([]) is None and shown(None) == ("–", "–")
    assert agreement([(2, 1), (4, 2)])["spearman"] is None, "two pages have no order worth mentioning"


@pytest.mark.parametrize("pair", [(0, 1), (1, -1), (math.nan, 1), (1, math.inf), (None, 1), ("1", 1), (True, 1), (1,), (1, 2, 3)])
def test_times_are_positive_numbers(pair):
    with pytest.raises(ValueError, match="pair 1: .*expected two positive numbers"):
        agreement([(1, 1), pair])


def pages(*words):
    return subprocess.run([sys.executable, BENCH / "pages", *map(str, words)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("words, expected", [
    (["loads", "--browser", "netscape"], "`netscape` (expected chromium or firefox)"),
    (["loads", "--http", "2,4"], "`4` (expected 1.1, 2 or 3)"),
    (["loads", "--http", "1.1,2", "--browser", "firefox"], "HTTP/1.1 only with chromium"),
    (["loads", "--network", "2mbit/x"], "`2mbit/x` (expected a name, a file, or RATE[:UP]/RTT[/LOSS] such as 2mbit/100ms)"),
    (["loads", "--view", "third"], "`third` (expected first or repeat)"),
    (["loads", "--view", "repeat", "--browser", "firefox"], "the repeat view only with chromium"),
    (["loads", "--pages", "0"], "`0` (expected a number from 1 on)"),
])
def test_bad_arguments_are_named(words, expected):
    done = pages(*words)
    assert done.returncode == 2 and expected in done.stderr, done.stderr


def test_bad_rows_are_named(tmp_path):
    done = pages("rank", tmp_path)
    assert done.returncode == 1 and "expected the directory of `bench/pages loads`" in done.stderr, done.stderr
    row = {"page": "a", "network": "lte", "http": "2", "browser": "chromium", "view": "first", "repeat": 0, "load_ms": 5, "first_render_ms": 1}
    (tmp_path / "corpus.ndjson").write_text("")
    rows = tmp_path / "loads.ndjson"
    for bad, expected in [
        ("{", "line 1: not JSON"),
        (json.dumps(row | {"load_ms": "5"}), "line 1: `load_ms`: '5' (expected a positive number or null)"),
        (json.dumps({key: row[key] for key in row if key != "network"}), "line 1: no `network`"),
        ("[]", "line 1: not an object"),
    ]:
        rows.write_text(f"{bad}\n{json.dumps(row)}\n")
        done = pages("rank", tmp_path)
        assert done.returncode == 1 and expected in done.stderr, done.stderr
    rows.write_text(json.dumps(row | {"load_ms": None}) + '\n{"page": "cut of')
    done = pages("rank", tmp_path)
    assert done.returncode == 1 and "no page loads" in done.stderr, "the last row may be cut: " + done.stderr


def module():
    """`bench/pages` as a module."""
    loader = importlib.machinery.SourceFileLoader("pages", str(BENCH / "pages"))
    spec = importlib.util.spec_from_loader("pages", loader)
    loaded = importlib.util.module_from_spec(spec)
    loader.exec_module(loaded)
    return loaded


def test_a_network_of_compare_has_the_rates_and_queues_of_the_simulator():
    flags = module().path_flags
    assert flags("lte") == ["--network", "lte"]
    _, file = flags("2mbit/100ms")
    # A fifth of the rate down, and at least 500 kb/s; a round trip, and at least 30 kB.
    assert pathlib.Path(file).read_text() == (
        'rtt = "100ms"\n[down]\nrate = "2000000bit"\nqueue = "30000B"\n[up]\nrate = "500000bit"\nqueue = "30000B"\n')
    _, file = flags("50mbit:5mbit/10ms/1%")
    assert pathlib.Path(file).read_text() == (
        'rtt = "10ms"\n[down]\nrate = "50000000bit"\nqueue = "312500B"\nloss = "1%"\n'
        '[up]\nrate = "5000000bit"\nqueue = "31250B"\nloss = "1%"\n')


def test_speedups_are_of_the_pages_that_all_browsers_loaded(capsys):
    times = {("chromium", "lte", "1.1", "first"): {"a": 100, "b": 400, "c": 7}, ("chromium", "lte", "2", "first"): {"a": 50, "b": 800, "c": 9},
             ("simulated", "lte", "1.1", "first"): {"a": 100, "b": 100}, ("simulated", "lte", "2", "first"): {"a": 25, "b": 100}}
    module().print_speedups({"load_ms": times, "first_render_ms": {}}, ["chromium", "simulated"])
    # 2 and 1/2; 4 and 1. Two pages: an interval is from the lower to the higher.
    assert "| HTTP/2 | 1.00 (0.50–2.00) | 2.00 (1.00–4.00) | – | – |" in capsys.readouterr().out
