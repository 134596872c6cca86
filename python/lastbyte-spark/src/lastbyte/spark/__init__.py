"""Queries of Lastbyte on Spark: `query` gives the output of `lastbyte query` on all files, byte for byte.

Executors need nothing installed: the program is shipped with the job. Each task runs `lastbyte query --partial` on a part of
the input, states are merged in a tree, and the driver merges the last ones.
"""

import glob
import gzip
import json
import math
import os
import shutil
import sys
from dataclasses import dataclass

from lastbyte.spark import parts as cutting
from lastbyte.spark import run as running
from lastbyte.spark.run import QueryError

__all__ = ["QueryError", "Result", "query", "report"]

#: States that a task merges.
FAN = 16

#: Formats of the output that are text.
OUTPUTS = ("json", "pretty", "tsv", "csv")

#: Files of a task at most.
FILES_MAX = 1000


@dataclass(frozen=True)
class Result:
    """The output of a query."""

    text: str

    def rows(self):
        """The values of the lines."""
        return [json.loads(line) for line in self._lines()]

    def dataframe(self, spark):
        """A DataFrame with a row for each line, which must be an object."""
        return spark.read.json(spark.sparkContext.parallelize(self._lines(), 1))

    def _lines(self):
        return self.text.split("\n")[:-1]


def query(
    spark,
    paths,
    query,
    *,
    helpers=(),
    output="json",
    skip_bad_lines=False,
    reader=None,
    part_bytes=128 << 20,
    binary=None,
):
    """Runs a query over files, and returns a `Result`.

    `spark` is a session or a context. `paths` is a path, a glob pattern or a list of them, read in this order. `helpers` are
    files of Ruby helpers, or `"h2o"`. `output` is a format of `lastbyte query -o`. `reader` is how executors read files:
    `"local"` (the default for paths without a scheme, which all executors must see), `"fsspec"`, or `"hadoop"` (the default
    for URLs). `part_bytes` is the size of a part. `binary` is the program; by default `$LASTBYTE`, else `lastbyte` in PATH.

    Raises `QueryError` if the query is wrong or cannot be merged, and if a file or a row has an error.
    """
    if part_bytes < 1:
        raise ValueError(f"invalid part_bytes {part_bytes} (expected 1 or more)")
    if output not in OUTPUTS:
        raise ValueError(f"unknown output `{output}` (expected one of {', '.join(OUTPUTS)})")
    context = getattr(spark, "sparkContext", spark)
    binary = _binary(binary)
    helpers = [_helper(name) for name in helpers]
    reading = ["--skip-bad-lines"] if skip_bad_lines else []
    # A query that cannot be merged is refused before anything is read.
    with running.program(binary, ["--partial", *reading], helpers) as (command, _):
        empty = running.run([*command, "--", query])

    def partial(program, name, where, chunks):
        options = ["--partial", "--stdin-name", name, *reading]
        with running.program(program, options, helpers) as (command, _):
            return running.run([*command, "--", query], chunks, where)

    def merge(program, states):
        return running.merge(program, ["--partial"], helpers, query, states)

    states = _states(context, binary, paths, reader, part_bytes, partial, merge)
    count = states.getNumPartitions()
    while count > FAN:
        states, count = _merged(states, count, binary, merge), math.ceil(count / FAN)
    gathered = _checked(states.collect()) or [empty]
    out = running.merge(binary, ["-o", output], helpers, query, gathered)
    return Result(out.decode())


def report(spark, paths, out="report.html", options=(), *, reader=None, part_bytes=128 << 20, binary=None):
    """Writes the page of `lastbyte report` over files, and returns what the program prints.

    `options` are options of `lastbyte report`, such as `["--metric", "client.ttfb"]`. The others are those of `query`.
    """
    from pyspark import StorageLevel

    context = getattr(spark, "sparkContext", spark)
    binary = _binary(binary)
    options = [*options]
    # Wrong options are refused before anything is read.
    empty = running.run([binary, "report", "--partial", *options, "-"])

    def partial(program, name, where, chunks):
        command = [program, "report", "--partial", "--jobs", "1", *options, "-"]
        return gzip.compress(running.run(command, chunks, where), 1)

    def merge(_, states):
        return b"".join(states)

    states = _states(context, binary, paths, reader, part_bytes, partial, merge)
    states = states.persist(StorageLevel.DISK_ONLY)
    try:
        states.count()
        with running.Files() as files:
            # One after the other: all of them may be too large for the driver's memory.
            rows = ((index, files.write(state), error) for index, state, error in states.toLocalIterator())
            names = _checked(rows) or [files.write(empty)]
            command = [binary, "report", "--merge", "-o", out, *options, *names]
            return running.run(command).decode()
    finally:
        states.unpersist()


def _binary(binary):
    found = binary or os.environ.get("LASTBYTE") or shutil.which("lastbyte")
    if not found or not os.access(found, os.X_OK):
        raise FileNotFoundError(
            f"no program `{found or 'lastbyte'}` (expected in PATH, in $LASTBYTE or as `binary`)"
        )
    return os.path.abspath(found)


def _helper(name):
    """The name of a helper file, and its text unless it is built in."""
    if name == "h2o":
        return name, None
    with open(name, encoding="utf-8") as file:
        return name, file.read()


def _states(context, binary, paths, reader, part_bytes, partial, merge):
    """An RDD of states, each with its place and an error in place of a state that there is not."""
    from pyspark import SparkFiles, cloudpickle

    # Executors receive this package with the job.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    context.addFile(binary)
    name = os.path.basename(binary)

    def of_task(index, states_of):
        """The state of a task, or an error that does not go away when Spark tries it again."""
        program = SparkFiles.get(name)
        try:
            states = list(states_of(program))
            state = states[0] if len(states) == 1 else merge(program, states)
            return [(index, state, None)]
        except QueryError as error:
            return [(index, b"", str(error))]

    paths = [paths] if isinstance(paths, str) else list(paths)
    reader = reader or ("hadoop" if any("://" in path for path in paths) else "local")
    if reader not in ("local", "fsspec", "hadoop"):
        raise ValueError(f"unknown reader `{reader}` (expected `local`, `fsspec` or `hadoop`)")
    if reader == "hadoop":
        files = _hadoop_files(context, paths, part_bytes)
        if not files:
            return context.parallelize([], 1)

        def of_rows(path, is_compressed):
            def rows_of(rows):
                if is_compressed:
                    chunks = (content for _, content in rows)
                else:
                    chunks = (row + b"\n" for row in rows)
                return of_task(0, lambda program: [partial(program, path, path, chunks)])

            return rows_of

        rdds = [rdd.mapPartitions(of_rows(*file)) for *file, rdd in files]
        return context.union(rdds).mapPartitionsWithIndex(
            lambda index, rows: [(index, state, error) for _, state, error in rows]
        )

    def of_parts(task):
        index, parts = task

        def states(program):
            for part in parts:
                with cutting.open_file(part.path, reader) as file:
                    yield partial(program, part.path, str(part), cutting.read(part, file))

        return of_task(index, states)

    tasks = _tasks(paths, reader, part_bytes)
    return context.parallelize(tasks, max(len(tasks), 1)).flatMap(of_parts)


def _tasks(paths, reader, part_bytes):
    """Parts of all files, those of small files several in a task, with the place of the task."""
    tasks, room = [], 0
    for path in _expanded(paths, reader):
        with cutting.open_file(path, reader) as file:
            beginning = file.read(4)
        size = cutting.size_of(path, reader)
        for part in cutting.cut(path, beginning, size, part_bytes):
            bytes_ = part.end - part.start
            if not tasks or bytes_ > room or len(tasks[-1]) == FILES_MAX:
                tasks.append([])
                room = part_bytes
            tasks[-1].append(part)
            room -= bytes_
    return list(enumerate(tasks))


def _expanded(paths, reader):
    for path in paths:
        found = [path]
        if reader == "local":
            path = path.removeprefix("file://")
            found = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
        elif glob.has_magic(path):
            import fsspec

            system, name = fsspec.core.url_to_fs(path)
            found = [system.unstrip_protocol(file) for file in sorted(system.glob(name))]
        if not found:
            raise FileNotFoundError(f"no file matches `{path}`")
        yield from found


def _hadoop_files(context, paths, part_bytes):
    """Files, whether they are compressed, and RDDs of their lines or contents, read by Spark's own file systems."""
    files = []
    for pattern in paths:
        path = context._jvm.org.apache.hadoop.fs.Path(pattern)
        system = path.getFileSystem(context._jsc.hadoopConfiguration())
        found = [status for status in system.globStatus(path) or [] if not status.isDirectory()]
        if not found:
            raise FileNotFoundError(f"no file matches `{pattern}`")
        for status in sorted(found, key=lambda status: status.getPath().toString()):
            name, size = status.getPath().toString(), status.getLen()
            if name.endswith((".gz", ".zst")):
                files.append((name, True, context.binaryFiles(name, 1)))
            else:
                count = math.ceil(max(size, 1) / part_bytes)
                files.append((name, False, context.textFile(name, count, use_unicode=False)))
    return files


def _checked(rows):
    """The states in order."""
    rows = sorted(rows, key=lambda row: row[0])
    for _, _, error in rows:
        if error is not None:
            raise QueryError(error)
    return [state for _, state, _ in rows]


def _merged(states, count, binary, merge):
    """States, of which neighbours are merged."""
    name = os.path.basename(binary)

    def merged(group):
        from pyspark import SparkFiles

        index, rows = group
        try:
            return index, merge(SparkFiles.get(name), _checked(rows)), None
        except QueryError as error:
            return index, b"", str(error)

    keyed = states.map(lambda row: (row[0] // FAN, row))
    return keyed.groupByKey(math.ceil(count / FAN)).map(merged)
