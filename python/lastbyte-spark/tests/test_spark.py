"""Queries on two executors of real Spark are those of one process, byte for byte."""

import gzip
import json
import os
import pathlib
import stat
import subprocess

import pytest

import lastbyte.spark
from lastbyte.spark import parts, run

ROOT = pathlib.Path(__file__).parents[3]
GOLDEN = ROOT / "crates/query/tests/golden.ndjson"
BINARY = os.environ["LASTBYTE"]

#: Why a query, or its values, cannot be merged.
REFUSALS = ("cannot be merged", "cannot be joined")


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    # Executors cannot import the packages: they receive what they need with the job.
    absent = tmp_path_factory.mktemp("path")
    (absent / "lastbyte").mkdir()
    (absent / "lastbyte/__init__.py").write_text("raise ImportError('not on executors')\n")
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executorEnv.PYTHONPATH", str(absent))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()


def one_process(query, *files, options=()):
    done = subprocess.run([BINARY, "query", *options, "--", query, *map(str, files)], capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def row(number):
    value = {
        "n": number,
        "arm": ["baseline", "rapidstart", "bbr"][number * 7919 % 3],
        "ttlb": number * 104729 % 1009 / 8,
        "url": f"/{number % 7}/é",
        "bytes": number * 31 % 977,
    }
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A plain log, one of members of whole lines, one of members that end within lines, one of one member."""
    folder = tmp_path_factory.mktemp("logs")
    text = [b"".join(map(row, range(start, start + 700))) for start in range(0, 2800, 700)]
    (folder / "a.ndjson").write_bytes(text[0])
    members = text[1].splitlines(keepends=True)
    packed = [gzip.compress(b"".join(members[at : at + 40])) for at in range(0, 700, 40)]
    (folder / "b.ndjson.gz").write_bytes(b"".join(packed))
    packed = [gzip.compress(text[2][at : at + 1000]) for at in range(0, len(text[2]), 1000)]
    (folder / "c.ndjson.gz").write_bytes(b"".join(packed))
    (folder / "d.ndjson.gz").write_bytes(gzip.compress(text[3]))
    return folder


QUERIES = [
    "count()",
    '[sum(_["ttlb"]), average(_["ttlb"]), stdev(_["ttlb"])]',
    'group_by(_["arm"]) { |r| percentile(r["ttlb"], [0.1, 0.5, 0.9]) } >> map_values { |v| v.map { |x| x * 2 } }',
    'group_by(_["url"]) { |r| [count(), min(r["n"]), top(2, r["bytes"])] }',
    'select(_["n"] % 5 == 0) >> sort(-_["ttlb"]) >> _["n"]',
    'distinct(_["bytes"]) >> flat',
]


@pytest.mark.parametrize("reader", ["local", "fsspec", "hadoop"])
def test_the_output_is_that_of_one_process(spark, logs, reader):
    paths = [str(logs / "*.ndjson"), str(logs / "*.ndjson.gz")]
    if reader != "local":
        paths = [f"file://{path}" for path in paths]
    files = sorted(logs.iterdir())
    for query in QUERIES if reader == "local" else QUERIES[1:3]:
        # More tasks than a task merges, so that states are merged in a tree.
        result = lastbyte.spark.query(spark, paths, query, part_bytes=3000, reader=reader)
        assert result.text == one_process(query, *files), query


def test_executors_do_not_have_the_package(spark):
    def imported(_):
        try:
            import lastbyte
        except ImportError as error:
            return str(error)
        return lastbyte.__file__

    found = spark.sparkContext.parallelize(range(2), 2).map(imported).collect()
    assert found == ["not on executors"] * 2


def test_parts_are_many(logs):
    path = logs / "b.ndjson.gz"
    cut = parts.cut(str(path), parts.GZIP, path.stat().st_size, 2000)
    assert len(cut) > 2
    with open(path, "rb") as file:
        assert sum(1 for part in cut if b"".join(parts.read(part, file))) > 2


def test_golden_queries_are_those_of_one_process(spark, tmp_path):
    """All golden queries in one job: each line of their input is a part."""
    binary, cases = BINARY, []
    for line in GOLDEN.read_text().splitlines():
        case = json.loads(line)
        if "stdin" not in case or case["exit"] != 0 or "query" not in case:
            continue
        helpers = [("helpers.rb", case["helpers"])] if case.get("helpers") else []
        lines = case["stdin"].encode().splitlines(keepends=True)
        cases.append((case, helpers, lines))
    pickled = [(at, case["query"], helpers, lines) for at, (case, helpers, lines) in enumerate(cases)]

    def states(task):
        at, query, helpers, lines = task
        try:
            found = []
            for line in lines or [b""]:
                with run.program(binary, ["--partial"], helpers) as (command, _):
                    found.append(run.run([*command, "--", query], [line]))
            return at, found, None
        except run.QueryError as error:
            return at, None, str(error)

    compared, refused = 0, 0
    found = spark.sparkContext.parallelize(pickled, 4).map(states).collect()
    for at, states_, error in found:
        case, helpers, lines = cases[at]
        options = [*case["args"]]
        with run.program(binary, options, helpers) as (command, _):
            done = subprocess.run([*command, "--", case["query"]], input=b"".join(lines), capture_output=True)
        if done.returncode:
            continue
        if error is None:
            try:
                merged = run.merge(binary, options, helpers, case["query"], states_)
            except run.QueryError as refusal:
                error = str(refusal)
        if error is not None:
            assert any(refusal in error for refusal in REFUSALS), (case["query"], error)
            refused += 1
            continue
        assert merged == done.stdout, case["query"]
        compared += 1
    assert compared >= 100, (compared, refused)


KILLER = """#!/bin/sh
# The first to come kills the executor that it runs on.
if [ "$1 $2" = "query --partial" ] && [ "$3" = "--stdin-name" ] && mkdir '{mark}' 2>/dev/null; then
    pid=$$
    while [ "$(cat /proc/$pid/comm)" != java ]; do
        pid=$(awk '/^PPid:/ {{ print $2 }}' /proc/$pid/status)
    done
    echo "$pid" > '{mark}/pid'
    kill -9 "$pid"
fi
exec '{binary}' "$@"
"""


def test_a_killed_executor_costs_a_retry_and_no_row(spark, logs, tmp_path):
    mark, killer = tmp_path / "mark", tmp_path / "lastbyte-killer"
    killer.write_text(KILLER.format(mark=mark, binary=BINARY))
    killer.chmod(killer.stat().st_mode | stat.S_IXUSR)
    query = QUERIES[2]
    result = lastbyte.spark.query(
        spark, str(logs / "*"), query, part_bytes=2000, binary=str(killer)
    )
    assert result.text == one_process(query, *sorted(logs.iterdir()))
    pid = int((mark / "pid").read_text())
    assert pid != os.getpid() and not pathlib.Path(f"/proc/{pid}/cmdline").exists()


def test_rows_and_frames(spark, logs):
    query = 'group_by(_["arm"]) { |r| count() } >> _.map { |arm, n| {arm: arm, n: n} } >> flat'
    result = lastbyte.spark.query(spark.sparkContext, [str(logs / "a.ndjson")], query)
    assert sum(one["n"] for one in result.rows()) == 700
    frame = result.dataframe(spark)
    assert sorted(frame.columns) == ["arm", "n"]
    assert [one.asDict() for one in frame.collect()] == result.rows()
    table = lastbyte.spark.query(spark, str(logs / "a.ndjson"), query, output="tsv")
    assert table.text == one_process(query, logs / "a.ndjson", options=["-o", "tsv"])


def test_helpers_and_names_of_files(spark, logs, tmp_path):
    helpers = tmp_path / "h.rb"
    helpers.write_text("def slow(row) row['ttlb'] > 60 end\n")
    query = "select(slow(_)) >> group_by($FILENAME) { count() }"
    files = sorted(logs.iterdir())
    result = lastbyte.spark.query(
        spark, str(logs / "*"), query, helpers=[str(helpers)], part_bytes=2000
    )
    assert result.text == one_process(query, *files, options=["-r", helpers])
    assert len(result.rows()[0]) == 4


def test_errors_are_those_of_the_program(spark, logs, tmp_path):
    with pytest.raises(lastbyte.spark.QueryError, match="cannot be merged: it has no reducer"):
        lastbyte.spark.query(spark, str(logs / "*"), '_["arm"]')
    with pytest.raises(lastbyte.spark.QueryError, match="unclosed or mismatched delimiter"):
        lastbyte.spark.query(spark, str(logs / "*"), "count(")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        lastbyte.spark.query(spark, str(logs / "*.csv"), "count()")
    with pytest.raises(ValueError, match="unknown output `parquet`"):
        lastbyte.spark.query(spark, str(logs / "*"), "count()", output="parquet")
    with pytest.raises(FileNotFoundError, match="no program"):
        lastbyte.spark.query(spark, str(logs / "*"), "count()", binary="/no/such/program")
    wrong = tmp_path / "wrong.ndjson"
    wrong.write_bytes(row(1) * 100 + b"{\n")
    with pytest.raises(lastbyte.spark.QueryError, match="wrong.ndjson.*JSON::ParserError"):
        lastbyte.spark.query(spark, [str(logs / "*"), str(wrong)], "count()", part_bytes=2000)
    result = lastbyte.spark.query(spark, str(wrong), "count()", skip_bad_lines=True)
    assert result.text == "100\n"
    truncated = tmp_path / "truncated.ndjson.gz"
    truncated.write_bytes((logs / "b.ndjson.gz").read_bytes()[:-10])
    with pytest.raises(lastbyte.spark.QueryError, match="truncated.ndjson.gz"):
        lastbyte.spark.query(spark, str(truncated), "count()", part_bytes=2000)


def test_reports_are_those_of_one_process(spark, logs, tmp_path):
    options = ["--metric", "ttlb", "--baseline", "baseline", "--json"]
    options += ["--resamples", "100"]
    page = tmp_path / "page.html"
    got = lastbyte.spark.report(
        spark, str(logs / "*"), str(page), [option for option in options if option != "--json"], part_bytes=2000
    )
    whole = subprocess.run(
        [BINARY, "report", *options[:-3], "--resamples", "100", "-o", str(page), *map(str, sorted(logs.iterdir()))],
        capture_output=True,
        check=True,
    )
    assert got == whole.stdout.decode()
    assert page.stat().st_size > 10_000
