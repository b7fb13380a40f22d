# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/pictures/ and fuzz/seeds/png/: each kind of PNG by hand.

NAME.rgb beside NAME.png is what a decoder must make of it. What has none must
be refused.
"""

import pathlib
import struct
import zlib

HERE = pathlib.Path(__file__).parent
PICTURES = HERE / "pictures"
SEEDS = HERE.parent.parent / "fuzz" / "seeds" / "png"

WIDTH, HEIGHT = 13, 7  # so that no pass of an interlaced one is even
PIXELS = [(x, y) for y in range(HEIGHT) for x in range(WIDTH)]
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
# First column, first row, and the steps from there, of each pass.
ADAM7 = [
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
]


def chunk(name, data):
    check = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)


def header(kind, depth=8, interlaced=0, width=WIDTH, height=HEIGHT):
    fields = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", fields)


def png(kind, rows, depth=8, before=b"", **changes):
    body = chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return header(kind, depth, **changes) + before + body


def row(pixels):
    return b"\x00" + b"".join(pixels)


def rows(pixel):
    """Every row, each pixel as pixel(x, y) has it."""
    return b"".join(row(pixel(x, y) for x in range(WIDTH)) for y in range(HEIGHT))


def passes(pixel):
    return b"".join(
        row(pixel(x, y) for x in range(left, WIDTH, across))
        for left, top, across, down in ADAM7
        for y in range(top, HEIGHT, down)
        if left < WIDTH
    )


def bits(value):
    """Rows of one bit a pixel."""
    packed = b""
    for y in range(HEIGHT):
        line = "".join(str(value(x, y)) for x in range(WIDTH)).ljust(16, "0")
        packed += b"\x00" + int(line, 2).to_bytes(2, "big")
    return packed


def colour(x, y):
    return bytes([x * 19, y * 36, 255 - x * y])


def shade(x, y):
    return bytes([x * 12 + y * 14])


def filtered():
    """Rows of colour, filtered in each of the five ways."""
    packed, above = b"", bytes(3 * WIDTH)
    for y in range(HEIGHT):
        line = b"".join(colour(x, y) for x in range(WIDTH))
        packed += filter_row(y % 5, line, above)
        above = line
    return packed


def filter_row(way, line, above):
    out = bytearray([way])
    for i, value in enumerate(line):
        left = line[i - 3] if i >= 3 else 0
        corner = above[i - 3] if i >= 3 else 0
        guess = [0, left, above[i], (left + above[i]) // 2]
        guess.append(paeth(left, above[i], corner))
        out.append((value - guess[way]) % 256)
    return bytes(out)


def paeth(left, above, corner):
    base = left + above - corner
    return min((left, above, corner), key=lambda near: abs(base - near))


def whole(pixel):
    return b"".join(pixel(x, y) for x, y in PIXELS)


def good():
    """(name, PNG, its RGB)."""
    plain, grey = whole(colour), whole(lambda x, y: shade(x, y) * 3)
    palette = chunk(b"PLTE", whole(colour))
    clear = chunk(b"tRNS", bytes(range(WIDTH * HEIGHT)))
    index = rows(lambda x, y: bytes([y * WIDTH + x]))

    def chequer(x, y):
        return (x + y) % 2

    yield "rgb", png(RGB, filtered()), plain
    yield "rgb_interlaced", png(RGB, passes(colour), interlaced=1), plain
    yield "rgba", png(RGBA, rows(lambda x, y: colour(x, y) + shade(x, y))), plain
    yield "palette", png(PALETTE, index, before=palette), plain
    yield "palette_clear", png(PALETTE, index, before=palette + clear), plain
    yield "grey", png(GREY, rows(shade)), grey
    yield "grey_interlaced", png(GREY, passes(shade), interlaced=1), grey
    yield "grey_alpha", png(GREY_ALPHA, rows(lambda x, y: shade(x, y) * 2)), grey
    bilevel = whole(lambda x, y: bytes([255 * chequer(x, y)]) * 3)
    yield "grey_1_bit", png(GREY, bits(chequer), depth=1), bilevel
    # Much of a profile that is none, and that nobody asks for.
    profile = b"icc\x00\x00" + zlib.compress(bytes(900 << 10), 9)
    yield "large_profile", png(RGB, filtered(), before=chunk(b"iCCP", profile)), plain


def bad():
    """(name, what is no PNG that is taken)."""
    body = png(RGB, filtered())
    broken = bytearray(body)
    broken[-20] ^= 1
    double = rows(lambda x, y: b"".join(bytes([value]) * 2 for value in colour(x, y)))
    yield "rgb_16_bits", png(RGB, double, depth=16)
    yield "huge", png(RGB, b"", width=100_000, height=100_000)
    yield "no_pixels", png(RGB, b"", width=0)
    yield "cut_short", body[:-20]
    yield "broken", bytes(broken)
    yield "too_little", png(RGB, filtered()[:100])
    yield "bomb", png(RGB, filtered() + bytes(4 << 20))
    yield "no_palette", png(PALETTE, rows(shade))
    yield "unknown_kind", png(5, filtered())


if __name__ == "__main__":
    for folder in (PICTURES, SEEDS):
        folder.mkdir(parents=True, exist_ok=True)
    for name, picture, rgb in good():
        (PICTURES / f"{name}.png").write_bytes(picture)
        (PICTURES / f"{name}.rgb").write_bytes(rgb)
        (SEEDS / f"{name}.png").write_bytes(picture)
    for name, picture in bad():
        (PICTURES / f"{name}.png").write_bytes(picture)
        (SEEDS / f"{name}.png").write_bytes(picture)
