"""Small inputs in the suites' formats, the same in every run. Each function writes into the directory it is given."""

import os
import random
import struct

SEED = 20


def _write(directory, name, lines):
    with open(os.path.join(directory, name), "w") as out:
        out.write("\n".join(lines) + "\n")


def b_plus_tree(directory):
    order = random.Random(SEED)
    keys = list(range(4000))
    order.shuffle(keys)
    _write(directory, "mil.txt", ["4000"] + [str(key) for key in keys])
    _write(directory, "command.txt", ["j 600 30", "", "k 1000", ""])


def bfs_graph(directory):
    chance, nodes = random.Random(SEED), 2000
    edges = [[chance.randrange(nodes) for _ in range(chance.randint(1, 6))] for _ in range(nodes)]
    lines, first = [str(nodes)], 0
    for out in edges:
        lines.append(f"{first} {len(out)}")
        first += len(out)
    lines += ["", "0", "", str(first)] + [f"{to} 1" for out in edges for to in out]
    _write(directory, "graph.txt", lines)


def cfd_mesh(directory):
    """A torus of cells: area, then four neighbours with the normals of their faces, which close around the cell. One has a wall."""
    chance, cells = random.Random(SEED), 576
    lines = [str(cells)]
    for cell in range(cells):
        row = [f"{chance.uniform(0.5, 1.5):.6f}"]
        for step, normal in ((1, "0.1 0 0"), (-1, "-0.1 0 0"), (24, "0 0.1 0"), (-24, "0 -0.1 0")):
            wall = cell == 0 and step == 24
            row.append(f"{-1 if wall else (cell + step) % cells + 1} {normal}")
        lines.append(" ".join(row))
    _write(directory, "mesh", lines)


def hotspot(directory):
    chance = random.Random(SEED)
    _write(directory, "temp", [f"{chance.uniform(320, 340):.4f}" for _ in range(64 * 64)])
    _write(directory, "power", [f"{chance.uniform(0, 1e-3):.8f}" for _ in range(64 * 64)])


def hotspot3d(directory):
    chance = random.Random(SEED)
    _write(directory, "temp", [f"{chance.uniform(320, 340):.4f}" for _ in range(64 * 64 * 8)])
    _write(directory, "power", [f"{chance.uniform(0, 1e-3):.8f}" for _ in range(64 * 64 * 8)])


def symbols(directory):
    chance = random.Random(SEED)
    words = [min(255, int(chance.expovariate(0.05))) for _ in range(256 * 1024)]
    with open(os.path.join(directory, "test.in"), "wb") as out:
        out.write(bytes(words))


def points(directory):
    chance = random.Random(SEED)
    _write(directory, "points",
           [f"{i} " + " ".join(f"{chance.uniform(0, 9):.3f}" for _ in range(8)) for i in range(1024)])


def hurricanes(directory):
    """Records of 49 characters with latitude at 28 and longitude at 33."""
    chance = random.Random(SEED)
    for number in range(2):
        lines = []
        for i in range(500):
            record = f"{1950 + i % 70} {i % 12 + 1:2d} {i % 28 + 1:2d} {i % 24:2d} {i % 15:2d} NAME{i:06d}"
            record = f"{record:<28.28}{chance.uniform(0, 60):5.1f}{chance.uniform(0, 180):5.1f}  {i % 200:4d}    "
            lines.append(f"{record:<48.48}")
        _write(directory, f"cane{number}.db", lines)
    _write(directory, "filelist", ["cane0.db", "cane1.db"])


def image(directory):
    chance = random.Random(SEED)
    data = os.path.join(directory, "../../../data/srad")
    os.makedirs(data, exist_ok=True)
    rows = [" ".join(str(chance.randrange(1, 255)) for _ in range(64)) for _ in range(64)]
    for place in (directory, data):
        _write(place, "image.pgm", ["P2", "# made", "64 64", "255"] + rows)


def myocyte(directory):
    chance = random.Random(SEED)
    data = os.path.join(directory, "../../data/myocyte")
    os.makedirs(data, exist_ok=True)
    _write(data, "y.txt", [f"{chance.uniform(0.01, 1):.6f}" for _ in range(91)])
    _write(data, "params.txt", [f"{chance.uniform(0.1, 2):.6f}" for _ in range(18)])


def bitmap(directory):
    """A 192 x 192 picture of 24 bits as BMP."""
    chance, side = random.Random(SEED), 192
    pixels = bytes(chance.randrange(256) for _ in range(3 * side * side))
    header = b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54)
    header += struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
    data = os.path.join(directory, "../../data/dwt2d")
    os.makedirs(data, exist_ok=True)
    with open(os.path.join(data, "192.bmp"), "wb") as out:
        out.write(header + pixels)


def video(directory):
    """Ten grey frames of 656 x 744 as an uncompressed AVI."""
    chance, width, height, frames = random.Random(SEED), 656, 744, 10

    def chunk(tag, body):
        return tag + struct.pack("<I", len(body)) + body + (b"\0" if len(body) % 2 else b"")

    def listed(tag, body):
        return chunk(b"LIST", tag + body)

    size = width * height
    base = bytes(chance.randrange(256) for _ in range(size))
    main = chunk(b"avih", struct.pack("<14I", 40000, size * 25, 0, 0x10, frames, 0, 1, size, width, height, 0, 0, 0, 0))
    stream = chunk(b"strh", b"vids" + b"Y8  " + struct.pack("<10I", 0, 0, 0, 1, 25, 0, frames, size, 0, 0)
                   + struct.pack("<4H", 0, 0, width, height))
    form = chunk(b"strf", struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 0, size, 0, 0, 0, 0))
    body = b"".join(chunk(b"00db", base[i:] + base[:i]) for i in range(frames))
    head = listed(b"hdrl", main + listed(b"strl", stream + form))
    index = b"".join(b"00db" + struct.pack("<III", 0x10, 4 + i * (size + 8), size) for i in range(frames))
    with open(os.path.join(directory, "test.avi"), "wb") as out:
        out.write(chunk(b"RIFF", b"AVI " + head + listed(b"movi", body) + chunk(b"idx1", index)))
