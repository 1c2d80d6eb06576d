#!/usr/bin/env python3
"""The tile map as a program: IN OUT DEPFILE BORDER. Its working folder is where the source roots begin."""
import json
import struct
import sys


def wrong(place, text):
    sys.exit(f"{source}:{place}: error: {text}")


source, out, depfile, border = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
with open(source, encoding="utf-8") as f:
    name, *rows = f.read().splitlines()
with open(name, encoding="utf-8") as f:
    tiles = json.load(f)
with open(tiles["image"], "rb") as f:
    width, height = struct.unpack(">16x2I", f.read(24))  # of a PNG file
columns = width // tiles["tile"]
number = columns * (height // tiles["tile"])

with open(depfile, "w", encoding="utf-8") as f:
    print(f"{out}: {source} {name} {tiles['image']}", file=f)

grid = []
for y, row in enumerate(rows):
    if len(row) != len(rows[0]):
        wrong(y + 2, f"the row has {len(row)} tiles, the first one {len(rows[0])}")
    for x, letter in enumerate(row):
        tile = tiles["letters"].get(letter)
        if tile is None:
            wrong(f"{y + 2}:{x + 1}", f'letter "{letter}" is not in the tile set')
        if tile >= number:
            wrong(f"{y + 2}:{x + 1}", f'letter "{letter}" is tile {tile}, and the sheet has {number}')
    grid.append([tiles["letters"][letter] for letter in row])
if not grid:
    wrong(1, "the map has no rows")
if border >= 0:
    edge = [border] * (len(grid[0]) + 2)
    grid = [edge] + [[border] + row + [border] for row in grid] + [edge]

with open(out, "wb") as f:
    f.write(struct.pack("<4H", len(grid[0]), len(grid), tiles["tile"], columns))
    for row in grid:
        f.write(struct.pack(f"<{len(row)}H", *row))
