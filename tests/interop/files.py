"""What is served."""

import hashlib
import random
import struct
import zlib

SIZES = {"1k": 1 << 10, "100k": 100 << 10, "500k": 500 << 10, "1m": 1 << 20, "2m": 2 << 20, "5m": 5 << 20, "20m": 20 << 20}


def make_files(folder, seed):
    """What is served: the same bytes for the same seed."""
    chance = random.Random(seed)
    (folder / "m").mkdir(parents=True)
    (folder / "i").mkdir()
    for name, size in SIZES.items():
        (folder / name).write_bytes(chance.randbytes(size))
    for number in range(1999):
        (folder / f"m/{number:04}").write_bytes(chance.randbytes(32 + number % 97))
    (folder / "index.html").write_text("<!doctype html><title>Lastbyte</title><p>It works.\n")
    for number in range(100):
        (folder / f"i/{number:02}.png").write_bytes(picture(number))
    images = "".join(f'<img src="/i/{number:02}.png" width="64" height="64">\n' for number in range(100))
    (folder / "gallery.html").write_text(f"<!doctype html><title>Gallery</title><h1>A hundred pictures</h1>\n{images}")


def picture(number):
    """A PNG of 8 × 8 points, in a colour and with a corner of its own."""
    red, green, blue = number * 2 + 40, 255 - number * 2, number * 7 % 256
    corner = [bytes([255, 255, 255]) if column + row < number % 8 else bytes([red, green, blue])
              for row in range(8) for column in range(8)]
    rows = b"".join(b"\0" + b"".join(corner[row * 8 : row * 8 + 8]) for row in range(8))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
