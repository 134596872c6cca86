"""Parts of files have each line once, however they are cut."""

import gzip
import io
import random
import zlib

import pytest

from lastbyte.spark import parts


def lines(seed, count):
    chance = random.Random(seed)
    text = [b'{"n":%d,"s":"%s"}\n' % (n, b"x" * chance.randrange(60)) for n in range(count)]
    if seed % 2:
        # A last line without a line break.
        text[-1] = text[-1][:-1]
    return b"".join(text)


def text_of(part, content):
    data = b"".join(parts.read(part, io.BytesIO(content)))
    return data if part.kind == "lines" else gzip.decompress(data)


def check(content, text, part_bytes):
    found = [text_of(part, content) for part in parts.cut("log", content[:4], len(content), part_bytes)]
    assert b"".join(found) == text
    # Whole lines: each part but the last ends with a line break.
    assert all(part.endswith(b"\n") for part in [one for one in found if one][:-1])
    return found


def members(text, sizes):
    chance, at, packed = random.Random(7), 0, []
    while at < len(text):
        size = chance.choice(sizes)
        packed.append(gzip.compress(text[at : at + size], 1))
        at += size
    return b"".join(packed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("part_bytes", [1, 7, 100, 1000, 10**9])
def test_plain_files(seed, part_bytes):
    text = lines(seed, 60)
    check(text, text, part_bytes)


def test_empty_files_and_files_of_line_breaks():
    for text in [b"", b"\n", b"\n\n\n\n"]:
        for part_bytes in [1, 2, 100]:
            check(text, text, part_bytes)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("part_bytes", [1, 50, 333, 5000])
# Members of part of a line, of several, and of both.
@pytest.mark.parametrize("sizes", [[5, 11], [1000], [1, 300, 20]])
def test_members_may_end_within_lines(seed, part_bytes, sizes):
    text = lines(seed, 80)
    check(members(text, sizes), text, part_bytes)


def test_members_of_whole_lines_are_divided():
    text = b"".join(lines(0, 50) for _ in range(40))
    packed = b"".join(gzip.compress(lines(0, 50)) for _ in range(40))
    found = check(packed, text, len(packed) // 8)
    assert sum(1 for part in found if part) == 8


def test_a_file_of_one_member_is_one_part():
    text = lines(0, 500)
    found = check(gzip.compress(text), text, 100)
    assert [part for part in found if part] == [text]


def test_what_looks_like_a_member_is_none():
    # Stored, not compressed: the bytes of a header stand in the file.
    text = b"".join(b'{"a":"%d","b":"\x1f\x8b\x08\x00"}\n' % n for n in range(100))
    deflate = zlib.compressobj(level=0, wbits=31)
    packed = deflate.compress(text) + deflate.flush()
    assert packed.count(parts.GZIP) == 101
    check(packed, text, 50)
    check(packed + gzip.compress(text), text + text, 50)


def test_a_truncated_member_is_not_left_out():
    text = lines(0, 100)
    packed = members(text, [500])
    cut = packed[:-10]
    found = b"".join(
        b"".join(parts.read(part, io.BytesIO(cut)))
        for part in parts.cut("log", cut[:4], len(cut), 400)
    )
    # The program reads it and reports it.
    with pytest.raises(EOFError):
        gzip.decompress(found)


def test_files_that_become_shorter_are_errors():
    text = lines(0, 100)
    part = parts.Part("log", "whole", 0, len(text), len(text))
    with pytest.raises(OSError, match="shorter"):
        b"".join(parts.read(part, io.BytesIO(text[:-1])))


def test_zstandard_is_one_part():
    content = parts.ZSTANDARD + bytes(100)
    (part,) = parts.cut("log", content[:4], len(content), 10)
    assert b"".join(parts.read(part, io.BytesIO(content))) == content
