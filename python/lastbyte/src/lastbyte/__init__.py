"""Lastbyte from Python: simulations, experiments and logs, by the program `lastbyte` and its JSON.

    >>> import lastbyte
    >>> transfer = lastbyte.simulate("vdsl", "rapid-start", size="400kB")
    >>> frame = lastbyte.experiment(arms=["slow-start", "rapid-start"], connections=200)

The program is `$LASTBYTE`, else `lastbyte` in PATH.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from pkgutil import extend_path

# `lastbyte.spark` is another distribution.
__path__ = extend_path(__path__, __name__)

__all__ = ["Error", "experiment", "population", "query", "read_log", "simulate"]

#: Keys of what is drawn for a connection, in the log of an experiment, beside those of the link.
DRAWN = ("seed", "site", "class", "content_length")

#: Prefix of the keys of what happened on the link.
DROPS = "link.drops."


class Error(Exception):
    """The program refused its arguments or its input; the text is its message."""


def simulate(path, spec="rapid-start", **options):
    """Simulates one transfer with `lastbyte sim`, and returns its object of the JSON output (docs/sim.md).

    `path` is a named network or a network file, or a dict of options that describe one: `{"rate": "20Mb/s", "rtt": "40ms"}`.
    `spec` is a congestion control. Further options are those of `lastbyte sim`: `size="1MB"`, `seed=7`, `tls=True`.
    """
    path = path if isinstance(path, dict) else {"network": os.fspath(path)}
    transfers = json.loads(_run(["sim", "--json", *_options(**path), *_options(arm=spec, **options)]))
    if len(transfers) != 1:
        raise Error(f"{len(transfers)} transfers (expected options for one)")
    return transfers[0]


def experiment(file=None, *, arms=(), **options):
    """Runs an experiment with `lastbyte ab`, and returns its log as a pandas frame with a row for each connection.

    `file` is an experiment file; `arms` are specs, the baseline first. Further options are those of `lastbyte ab`:
    `connections=1000`, `seed=1`, `unpaired=True`, `network="lte"`.
    """
    with tempfile.TemporaryDirectory(prefix="lastbyte-") as folder:
        files = [] if file is None else [os.fspath(file)]
        _run(["ab", "--out", folder, "--force", *_options(arm=list(arms), **options), *files])
        return read_log(pathlib.Path(folder, "conns.ndjson"))


def population(file=None, *, connections=1000, **options):
    """Draws the paths of a population, and returns them as a pandas frame: `link.…`, `site`, `class`, and object size.

    The arguments are those of `experiment`, which simulates a transfer over each path.
    """
    options.setdefault("arms", ["a=slow-start", "b=slow-start"])
    frame = experiment(file, connections=2 * connections, **options)
    links = frame.columns.str.startswith("link.") & ~frame.columns.str.startswith(DROPS)
    keys = frame.columns[links | frame.columns.isin(DRAWN)]
    return frame[keys].drop_duplicates("seed", ignore_index=True)


def read_log(files, where=None):
    """Reads connection logs, plain or compressed, as a pandas frame with a row for each line and a column for each key.

    `where` is a condition of the query language, such as `_["complete"]`.
    """
    return frame_of(_lines(f"select({where})" if where else "_", files))


def query(query, files, *, helpers=()):
    """Runs a query over logs with `lastbyte query`, and returns the list of its values."""
    return [json.loads(line) for line in _lines(query, files, helpers)]


def frame_of(lines):
    """A pandas frame of JSON objects."""
    import pandas

    return pandas.DataFrame([json.loads(line) for line in lines])


def _lines(query, files, helpers=()):
    files = [files] if isinstance(files, (str, os.PathLike)) else files
    files = [os.path.abspath(file) for file in files]
    if not files:
        raise Error("no files to read")
    required = [word for helper in helpers for word in ("-r", os.fspath(helper))]
    return _run(["query", *required, "--", query, *files]).split("\n")[:-1]


def _options(**options):
    """Options as words: `time_limit="9s"` becomes `--time-limit=9s`; a list repeats the option."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(flag)
            elif one is not None and one is not False:
                words.append(f"{flag}={one}")
    return words


def program():
    """The path of the program."""
    found = os.environ.get("LASTBYTE") or shutil.which("lastbyte")
    if not found:
        raise FileNotFoundError("no program `lastbyte` (expected in PATH or in $LASTBYTE)")
    return found


def _run(words):
    done = subprocess.run([program(), *words], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Error(done.stderr.decode("utf-8", "replace").strip())
    return done.stdout.decode()
