#!/usr/bin/env python3
"""The include graph of src/ and kernels/: checks it, counts it, draws it.

usage: include_graph.py            exit status 1 when an include runs upwards, or files include each other in a circle
       include_graph.py --counts   a table of folders: files, lines, the folders each includes
       include_graph.py --svg FILE the folders as boxes, the way of the data, and how many includes run between them

A unit is NAME.c with NAME.h. Folders stand below in their order, lowest first: a unit may include units of its own folder and of folders
that stand before it, and no units may include each other, directly or by way of others."""
import collections
import html
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# folder, what it is for, and other folders than all the lower ones that it must not touch
ORDER = [
    ("core", "errors, log, text, JSON, types"),
    ("kernels", "number crunching behind one table of operations; no MPI, no files"),
    ("hdf5", "the HDF5 library's lock, datasets, chunks, filters"),
    ("cluster", "ranks, the queue of frames, stopping, what a node gives"),
    ("optics", "optics files, aberrations, the disc, pixels and frequencies"),
    ("method", "one file a method behind one table"),
    ("job", "job files"),
    ("input", "recordings: formats, adapters, series, the reading thread"),
    ("store", "the output file"),
    ("plan", "from a job to what will be done"),
    ("report", "pictures, plots, pages"),
    ("tasks", "one folder a task behind one table"),
    ("bench", "measuring the kernels"),
    ("cli", "the commands"),
]
LEVEL = {name: level for level, (name, _) in enumerate(ORDER)}
# kernels and files below it in the list know nothing of files and ranks.
FORBIDDEN = {"kernels": {"hdf5", "cluster"}, "optics": {"hdf5", "cluster"}, "method": {"hdf5", "cluster"}, "job": {"cluster"}}


def sources():
    for top in ("src", "kernels"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".c", ".h", ".cu", ".cuh"):
                yield path


def unit_of(path):
    relative = path.relative_to(ROOT)
    parts = relative.parts[1:] if relative.parts[0] == "src" else relative.parts
    return "/".join(parts[:-1] + (relative.stem,))


def folder_of(unit):
    return unit.split("/")[0] if "/" in unit else ""


def read_graph():
    """{unit: {unit included: "file:line"}}, {folder: [lines]}"""
    graph, lines = collections.defaultdict(dict), collections.defaultdict(list)
    units = {}
    for path in sources():
        units.setdefault(unit_of(path), []).append(path)
    for unit, paths in units.items():
        graph[unit]
        for path in paths:
            text = path.read_text(encoding="utf-8")
            lines[folder_of(unit)].append(text.count("\n"))
            for number, line in enumerate(text.splitlines(), 1):
                found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if not found:
                    continue
                other = re.sub(r"\.(h|cuh|c|cu|inc)$", "", found.group(1))
                if other in units and other != unit:
                    graph[unit].setdefault(other, f"{path.relative_to(ROOT)}:{number}")
    return graph, lines


def upward_includes(graph):
    for unit, others in sorted(graph.items()):
        here = folder_of(unit)
        if not here:
            continue  # main.c stands above all
        if here not in LEVEL:
            yield f"src/{here}: a folder that is not in the list"
            continue
        for other, where in sorted(others.items()):
            there = folder_of(other)
            if there not in LEVEL:
                yield f"{where}: {other} stands in no listed folder"
            elif LEVEL[there] > LEVEL[here]:
                yield f"{where}: {here} includes {other}, which stands above it"
            elif there in FORBIDDEN.get(here, ()):
                yield f"{where}: {here} must not know {there}"


def circles(graph):
    """Strongly connected units, by Tarjan's walk."""
    index, low, stack, on_stack = {}, {}, [], set()
    found = []

    def walk(unit):
        index[unit] = low[unit] = len(index)
        stack.append(unit)
        on_stack.add(unit)
        for other in graph[unit]:
            if other not in index:
                walk(other)
                low[unit] = min(low[unit], low[other])
            elif other in on_stack:
                low[unit] = min(low[unit], index[other])
        if low[unit] == index[unit]:
            part = []
            while True:
                part.append(stack.pop())
                on_stack.discard(part[-1])
                if part[-1] == unit:
                    break
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for unit in sorted(graph):
        if unit not in index:
            walk(unit)
    return sorted(found)


def count_edges(graph):
    edges = collections.Counter()
    for unit, others in graph.items():
        for other in others:
            if folder_of(unit) != folder_of(other):
                edges[folder_of(unit), folder_of(other)] += 1
    return edges


def print_counts(graph, lines):
    edges = count_edges(graph)
    print(f"{'folder':8} {'files':>5} {'lines':>6}  includes (units)")
    for name, _ in ORDER:
        below = ", ".join(f"{other} {edges[name, other]}" for other, _ in ORDER if edges[name, other])
        print(f"{name:8} {len(lines[name]):5} {sum(lines[name]):6}  {below}")


def svg(graph, lines):
    """Boxes from the highest folder down to the lowest; to the left of each the folders it includes, as dots in their columns."""
    edges = count_edges(graph)
    row, left, box, top = 44, 20, 520, 66
    dots = left + box + 30
    names = [name for name, _ in ORDER]
    high = list(reversed(ORDER))
    width, height = dots + 34 * len(names) + 20, top + row * len(high) + 56
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="system-ui,sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{left}" y="26" font-size="17" font-weight="600">Folders of ptyseries, and what each includes</text>',
           f'<text x="{left}" y="46" fill="#555">A dot: the folder of the row includes the folder of the column; its size and number, how many '
           'files do. All dots lie to the lower left: includes run downwards.</text>']
    for column, name in enumerate(names):
        x = dots + 34 * column + 17
        out.append(f'<text x="{x}" y="{height - 40}" text-anchor="end" transform="rotate(-35 {x} {height - 40})" fill="#333">{name}</text>')
    for place, (name, purpose) in enumerate(high):
        y = top + row * place
        out.append(f'<rect x="{left}" y="{y}" width="{box}" height="{row - 8}" rx="5" fill="#eef3fa" stroke="#5b7fb5"/>')
        out.append(f'<text x="{left + 12}" y="{y + 23}" font-weight="600">{name}</text>')
        out.append(f'<text x="{left + 84}" y="{y + 23}" fill="#333">{html.escape(purpose)}</text>')
        out.append(f'<text x="{left + box - 8}" y="{y + 23}" text-anchor="end" fill="#777" font-size="11">{sum(lines[name])} lines</text>')
        out.append(f'<line x1="{dots}" y1="{y + 18}" x2="{dots + 34 * len(names)}" y2="{y + 18}" stroke="#eee"/>')
        for column, other in enumerate(names):
            n = edges[name, other]
            if n == 0:
                continue
            x, r = dots + 34 * column + 17, min(15, 6 + n ** 0.5)
            out.append(f'<circle cx="{x}" cy="{y + 18}" r="{r:.1f}" fill="#5b7fb5"/>')
            out.append(f'<text x="{x}" y="{y + 22}" text-anchor="middle" fill="#fff" font-size="10">{n}</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def main(arguments):
    graph, lines = read_graph()
    if arguments[:1] == ["--counts"]:
        print_counts(graph, lines)
        return 0
    if arguments[:1] == ["--svg"] and len(arguments) == 2:
        pathlib.Path(arguments[1]).write_text(svg(graph, lines), encoding="utf-8")
        return 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    faults = list(upward_includes(graph)) + ["a circle of includes: " + ", ".join(part) for part in circles(graph)]
    print("\n".join(faults) if faults else f"{len(graph)} units: every include runs downwards, no circle")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
