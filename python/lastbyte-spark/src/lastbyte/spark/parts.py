"""Parts of files: plain files are cut at lines, gzip files at members, and each line belongs to one part.

A part is a range of bytes. It has the lines that start in the range: the first part of a file starts with the file, and
each other one after the first line break, which the part before it reads. So lines may cross members, as in files
of `bgzip` and `pigz`. Zstandard files are not cut.
"""

import os
import zlib
from dataclasses import dataclass

CHUNK = 1 << 20

#: A member of gzip is accepted if this many bytes of its text, or all of it, inflate without an error.
CHECKED = 64 << 20

GZIP = b"\x1f\x8b\x08"
ZSTANDARD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Part:
    """The lines of a file that start in a range of its bytes."""

    path: str
    kind: str
    start: int
    end: int
    size: int

    def __str__(self):
        if (self.start, self.end) == (0, self.size):
            return self.path
        return f"{self.path}, bytes {self.start} to {self.end}"


def kind_of(beginning):
    """How a file is cut, by its first bytes."""
    if beginning.startswith(GZIP):
        return "members"
    return "whole" if beginning.startswith(ZSTANDARD) else "lines"


def cut(path, beginning, size, part_bytes):
    """The parts of a file."""
    kind = kind_of(beginning)
    step = max(size, 1) if kind == "whole" else part_bytes
    starts = range(0, max(size, 1), step)
    return [Part(path, kind, start, min(start + step, size), size) for start in starts]


def read(part, file):
    """The bytes of a part, in chunks: plain or compressed text."""
    if part.kind == "members":
        yield from _members(file, part)
    elif part.kind == "lines":
        yield from _range(file, _line_start(file, part.start), _line_start(file, part.end))
    else:
        yield from _range(file, 0, part.size)


def _range(file, start, end):
    file.seek(start)
    while start < end:
        data = file.read(min(CHUNK, end - start))
        if not data:
            raise OSError("the file became shorter while it was read")
        start += len(data)
        yield data


def _line_start(file, offset):
    """The start of the first line at or after an offset, or the end of the file."""
    if offset == 0:
        return 0
    position = offset - 1
    file.seek(position)
    while data := file.read(CHUNK):
        at = data.find(b"\n")
        if at >= 0:
            return position + at + 1
        position += len(data)
    return position


def _members(file, part):
    start = _member_start(file, part.start, part.end)
    if start is None:
        return
    end = _member_start(file, part.end, part.size) or part.size
    if start > 0:
        rest, position = _after_line(file, start, part.size)
        if position is None or position >= end:
            return
        rest = _Packer(rest)
        yield from rest
        start = rest.end
    yield from _range(file, start, end)
    if end < part.size:
        yield from _Packer(_line(file, end, part.size))


def _member_start(file, offset, limit):
    """The first member that starts in a range."""
    if offset == 0:
        return 0
    position, data = offset, b""
    while position < limit:
        file.seek(position)
        data = file.read(min(CHUNK, limit - position) + len(GZIP) - 1)
        at = data.find(GZIP)
        while at >= 0 and position + at < limit:
            if _is_member(file, position + at):
                return position + at
            at = data.find(GZIP, at + 1)
        if not data:
            break
        position += CHUNK
    return None


def _is_member(file, offset):
    inflated = 0
    try:
        for text in _text(file, offset, []):
            inflated += len(text)
            if inflated >= CHECKED:
                break
    except (zlib.error, EOFError):
        return False
    return True


def _text(file, offset, end):
    """The text of the member at an offset, in chunks. Appends the offset of its end."""
    inflate = zlib.decompressobj(wbits=31)
    while not inflate.eof:
        file.seek(offset)
        data = file.read(CHUNK)
        if not data:
            raise EOFError("a member of gzip is cut off")
        offset += len(data)
        while True:
            text = inflate.decompress(data, CHUNK)
            data = inflate.unconsumed_tail
            if text:
                yield text
            if inflate.eof or not data and len(text) < CHUNK:
                break
    end.append(offset - len(inflate.unused_data))


def _after_line(file, offset, size):
    """The text after the first line break in the member where it is, with the offset of that member."""
    while offset < size:
        end = []
        texts = _text(file, offset, end)
        for text in texts:
            at = text.find(b"\n")
            if at >= 0:
                return _Rest(text[at + 1 :], texts, end), offset
        offset = end[0]
    return None, None


class _Rest:
    """The rest of the text of a member."""

    def __init__(self, first, texts, end):
        self.first, self.texts, self._end = first, texts, end

    def __iter__(self):
        yield self.first
        yield from self.texts

    @property
    def end(self):
        return self._end[0]


class _Packer:
    """Text as a member of gzip."""

    def __init__(self, texts):
        self.texts = texts

    def __iter__(self):
        deflate = zlib.compressobj(level=1, wbits=31)
        for text in self.texts:
            yield deflate.compress(text)
        yield deflate.flush()

    @property
    def end(self):
        return self.texts.end


def _line(file, offset, size):
    """The first line of the text from an offset."""
    while offset < size:
        end = []
        for text in _text(file, offset, end):
            at = text.find(b"\n")
            if at >= 0:
                yield text[: at + 1]
                return
            yield text
        offset = end[0]


def open_file(path, reader):
    """Opens a file: `local`, or `fsspec`."""
    if reader == "local":
        return open(path, "rb")
    import fsspec

    return fsspec.open(path, "rb").open()


def size_of(path, reader):
    if reader == "local":
        return os.path.getsize(path)
    import fsspec

    system, name = fsspec.core.url_to_fs(path)
    return system.size(name)
