"""Runs the program on an executor or on the driver."""

import contextlib
import os
import subprocess
import tempfile
import threading


class QueryError(Exception):
    """A query, an input or a row is wrong; the text is that of the program."""


def run(command, chunks=(), where=None):
    """Runs a command with chunks of bytes as its standard input, and returns its standard output.

    A command that refuses its input raises `QueryError`. One that was killed raises `OSError`, and so does an input that
    cannot be read: Spark tries these again.
    """
    failed = []
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )

        def feed():
            try:
                for chunk in chunks:
                    process.stdin.write(chunk)
            except BrokenPipeError:
                # The command ended before its input: its exit code shows why.
                pass
            except Exception as error:
                # What was fed is not all of the input, so there is no result.
                failed.append(error)
                process.kill()
            finally:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        out = process.stdout.read()
        process.stdout.close()
        feeder.join()
        code = process.wait()
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace").strip()
    if failed:
        raise OSError(f"cannot read {where or 'the input'}: {failed[0]}") from failed[0]
    if code == 0:
        return out
    message = f"{where}: {text}" if where else text
    if code in (1, 2):
        raise QueryError(message)
    raise OSError(f"{command[0]} ended with code {code}: {message}")


class Files:
    """A temporary directory with files for the program."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="lastbyte-")
        self.count = 0
        return self

    def __exit__(self, *_):
        self.directory.cleanup()

    def write(self, data, name=None):
        self.count += 1
        path = os.path.join(self.directory.name, name or f"{self.count}.state")
        with open(path, "wb") as file:
            file.write(data)
        return path


@contextlib.contextmanager
def program(binary, options, helpers):
    """The beginning of a command line of `query`, and a directory for states. Helpers are names and texts."""
    with Files() as files:
        command = [binary, "query", *options]
        for number, (name, text) in enumerate(helpers):
            if text is not None:
                name = files.write(text.encode(), f"helpers-{number}.rb")
            command += ["-r", name]
        yield command, files


def merge(binary, options, helpers, query, states):
    """Merges states: to a state if `options` have `--partial`, else to the output."""
    with program(binary, ["--merge", *options], helpers) as (command, files):
        paths = [files.write(state) for state in states]
        return run([*command, "--", query, *paths])
