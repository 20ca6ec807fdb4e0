#!/usr/bin/env python3
"""The graph of includes and of use in src/ and kernels/: checks it, counts it, draws it.

usage: include_graph.py [--root DIR]             the check: exit status 1 when a rule below is broken
       include_graph.py [--root DIR] --counts    a table of folders: files, lines, and how many files each folder includes of which others
       include_graph.py [--root DIR] --svg FILE  draws the folders and the way of the data
       include_graph.py [--root DIR] --svg-check FILE   exit status 1 when FILE is not what --svg would write

The rules:
1. A folder knows the folders that its line in FOLDERS allows, all of which stand below it. Knowing is including a header of a folder, and
   calling a function that is defined there, whether or not a header says so. A folder without a line is refused.
2. No file includes itself by way of others. Headers and sources are files of their own here: measure.c may include measure_internal.h,
   which includes measure.h, for that is no circle; two headers that include each other are one.
3. No units need each other's functions, directly or by way of others. A unit is NAME.c (or .cu) with NAME.h (or .cuh), and needs the unit
   that defines a name (ps_..., a function or a table) which its functions or tables mention, by way of macros too. Where a function is declared does not
   matter: two sources that call each other are a circle also when one internal header declares what both define.
Types may be shared freely as long as rules 1 and 2 hold."""
import argparse
import collections
import html
import pathlib
import re
import sys

# Folder, what it is for, and the folders it may know; lowest first.
FOLDERS = [
    ("core", "errors, log, text, JSON, types", ""),
    ("kernels", "number crunching behind one table of operations; no MPI, no files", "core"),
    ("hdf5", "the library's lock, datasets, chunks, filters", "core"),
    ("cluster", "ranks, the queue of frames, stopping, what a node gives", "core hdf5"),
    ("optics", "optics files, aberrations, the disc, pixels and frequencies", "core kernels"),
    ("fit", "optics from the data alone", "core kernels cluster optics"),
    ("method", "one file a method behind one table", "core kernels optics"),
    ("drift", "shifts between images, aligned images", "core"),
    ("job", "job files", "core kernels optics method"),
    ("input", "recordings: formats, adapters, series, the reading threads, packed patterns to a backend", "core kernels hdf5 optics"),
    ("store", "the output file", "core kernels hdf5 cluster optics method job input"),
    ("plan", "from a job to what will be done", "core kernels cluster optics method job input store"),
    ("report", "pictures, plots, pages", "core hdf5 method store"),
    ("tasks", "one folder a task behind one table", "core kernels hdf5 cluster optics fit method drift job input store plan report"),
    ("bench", "measuring the kernels", "core kernels hdf5 cluster optics fit method input report tasks"),
    ("cli", "the commands", "core kernels hdf5 cluster optics method job input store plan report tasks bench"),
]
LEVEL = {name: level for level, (name, _, _) in enumerate(FOLDERS)}
ALLOWED = {name: set(known.split()) for name, _, known in FOLDERS}
# The way of the data through a reconstruction: what is handed on, and the folder that makes it of what it is handed.
WAY = [("job file", None), ("job", "job"), ("run plan", "plan"), ("counts", "input"), ("g, b, images", "kernels"), ("output file", "store"),
       ("pictures", "report")]
SOURCES, HEADERS = {".c", ".cu"}, {".h", ".cuh", ".inc"}
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


class Tree:
    """The files of a source tree, by their paths from its root."""

    def __init__(self, root):
        self.root = root
        self.text = {}
        for top in ("src", "kernels"):
            for path in sorted((root / top).rglob("*")):
                if path.suffix in SOURCES | HEADERS:
                    self.text[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
        self.includes = {file: dict(self.find_includes(file)) for file in self.text}
        self.uses = self.find_uses()

    def find_includes(self, file):
        """Pairs of an included file of the tree and the line."""
        beside = file.rpartition("/")[0]
        for number, line in enumerate(self.text[file].splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            for folder in ("src/", "", beside + "/") if found else ():
                if folder + found.group(1) in self.text:
                    yield folder + found.group(1), number
                    break

    def find_uses(self):
        """{unit: {unit whose name it mentions: that name}}"""
        defined, mentioned, macros = collections.defaultdict(set), {}, {}
        for file, text in self.text.items():
            names, mentioned[file] = names_of(text, pathlib.Path(file).suffix in HEADERS, macros)
            for name in names:
                defined[name].add(unit_of(file))
        uses = {unit_of(file): {} for file in self.text}
        for file, names in mentioned.items():
            here = unit_of(file)
            for name in sorted(expand(names, macros)):
                for other in defined.get(name, ()):
                    if here not in defined[name]:
                        uses[here].setdefault(other, name)
        return uses


def expand(names, macros):
    """The names that are mentioned once macros are replaced by what they stand for: the file that uses a macro does the mentioning."""
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += macros.get(name, ())
    return found


def names_of(text, is_header, macros):
    """The public names (ps_...) that a file defines, and all that its functions and tables mention; fills macros {name: names in it}
    with what it defines for others. Static functions of a source are nobody else's; those of a header are its own."""
    defined, mentioned, code = set(), set(), []
    for line in NOT_CODE.sub(lambda found: "" if found.group(0)[0] == "/" else '""', text.replace("\\\n", " ")).splitlines():
        macro = re.match(r"\s*#\s*define\s+(\w+)(?:\([^)]*\))?(.*)", line)
        if macro:
            names = set(re.findall(r"\b[A-Za-z_]\w*", macro.group(2)))
            is_local = not is_header or re.search(rf"#\s*undef\s+{macro.group(1)}\b", text)
            (mentioned if is_local else macros.setdefault(macro.group(1), set())).update(names)
        elif not line.lstrip().startswith("#"):
            code.append(line)
    depth, head = 0, []  # head: what stands before the brace or semicolon on the outermost level
    for token in re.findall(r"\w+|[^\s\w]", "\n".join(code)):
        if token == "{":
            if depth == 0 and head[:1] == ["extern"] and "(" not in head:
                head = []  # extern "C" {
                continue
            if depth == 0:
                defined |= defined_name(head, is_header)
            depth += 1
        elif token == "}":
            depth = max(depth - 1, 0)
            if depth == 0 and "=" not in head:
                head = []
        elif token == ";" and depth == 0:
            if "=" in head:
                defined |= defined_name(head, is_header)
            head = []
        elif depth == 0:
            if "=" in head or token.isupper():  # a table's entries; a macro that makes functions
                mentioned.add(token)
            head.append(token)
        else:
            mentioned.add(token)
    return defined, mentioned - defined


def defined_name(head, is_header):
    """The name that a definition's head gives: before "(" of a function, before "=" or "[" of a table."""
    if "typedef" in head or ("static" in head and not is_header):
        return set()
    stop = next((i for i, token in enumerate(head) if token in "(=[" and i > 0 and head[i - 1].startswith("ps_")), None)
    return {head[stop - 1]} if stop else set()


def unit_of(file):
    return re.sub(r"^src/", "", file).rpartition(".")[0]


def folder_of(file_or_unit):
    path = re.sub(r"^src/", "", file_or_unit)
    return path.split("/")[0] if "/" in path else ""


def folder_faults(tree):
    for here in sorted({folder_of(file) for file in tree.text} - {""} - LEVEL.keys()):
        yield f"{here}: a folder that is not in the list"
    known = collections.defaultdict(dict)  # (from, to): one place
    for file, others in tree.includes.items():
        for other, line in others.items():
            known[folder_of(file), folder_of(other)].setdefault(f"{file}:{line} includes {other}", unit_of(other))
    for unit, others in tree.uses.items():
        for other, name in others.items():
            if other not in known[folder_of(unit), folder_of(other)].values():
                known[folder_of(unit), folder_of(other)].setdefault(f"{unit} uses {name} of {other}", other)
    for (here, there), places in sorted(known.items()):
        if here not in LEVEL or here == there or there in ALLOWED[here]:
            continue  # main.c, in no folder, stands above all
        why = "which stands above it" if LEVEL.get(there, len(FOLDERS)) > LEVEL[here] else "which it must not know"
        for place in sorted(places):
            yield f"{place}: {here} knows {there}, {why}"


def circles(graph):
    """Strongly connected nodes, by Tarjan's walk."""
    index, low, stack, on_stack = {}, {}, [], set()
    found = []

    def walk(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in graph[node]:
            if other not in index:
                walk(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while True:
                part.append(stack.pop())
                on_stack.discard(part[-1])
                if part[-1] == node:
                    break
            if len(part) > 1 or node in graph[node]:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            walk(node)
    return sorted(found)


def faults(tree):
    yield from folder_faults(tree)
    for part in circles(tree.includes):
        yield "files include each other in a circle: " + ", ".join(part)
    for part in circles(tree.uses):
        inside = [f"{unit} uses {name} of {other}" for unit in part for other, name in sorted(tree.uses[unit].items()) if other in part]
        yield "units need each other's functions:\n    " + "\n    ".join(inside)


def count_edges(tree):
    """{(folder, folder it includes): files of the first that include files of the second, counted in pairs}"""
    edges = collections.Counter()
    for file, others in tree.includes.items():
        for other in others:
            if folder_of(file) and folder_of(file) != folder_of(other):
                edges[folder_of(file), folder_of(other)] += 1
    return edges


def print_counts(tree):
    edges = count_edges(tree)
    print(f"{'folder':8} {'files':>5} {'lines':>6}  includes (pairs of files)")
    for name in LEVEL:
        files = [file for file in tree.text if folder_of(file) == name]
        lines = sum(tree.text[file].count("\n") for file in files)
        print(f"{name:8} {len(files):5} {lines:6}  " + ", ".join(f"{other} {edges[name, other]}" for other in LEVEL if edges[name, other]))
    inside = sum(len(others) for others in tree.includes.values())
    print(f"{inside} includes, {sum(edges.values())} between folders; {sum(len(others) for others in tree.uses.values())} pairs of units, "
          "of which one uses the other")


def needed_edges(edges):
    """Those that do not follow from others: cli to core follows from cli to tasks and tasks to core."""
    below = {name: {other for other in LEVEL if edges[name, other] and LEVEL[other] < LEVEL[name]} for name in LEVEL}
    reach = {}
    for name in LEVEL:  # lowest first
        reach[name] = below[name].union(*(reach[other] for other in below[name]))
    return [(name, other) for name in reversed(LEVEL) for other in sorted(below[name], key=LEVEL.get, reverse=True)
            if not any(other in reach[middle] for middle in below[name])]


def lanes(edges, row_of):
    """A column for each edge so that no two in one column overlap; short ones lie near the boxes."""
    taken, lane = [], {}
    for edge in sorted(edges, key=lambda edge: (row_of[edge[1]] - row_of[edge[0]], row_of[edge[0]])):
        begin, end = row_of[edge[0]], row_of[edge[1]]
        for column in range(len(edges)):
            if column == len(taken):
                taken.append([])
            if all(end <= b or e <= begin for b, e in taken[column]):
                taken[column].append((begin, end))
                lane[edge] = column
                break
    return lane, len(taken)


def arrow(points):
    return '<polyline points="' + " ".join(f"{x},{y}" for x, y in points) + '" fill="none" stroke="#5b7fb5" stroke-width="1.4" ' \
        'marker-end="url(#head)"/>'


def svg(tree):
    """The way of the data as a row of boxes, then the folders from the highest down; an arrow from a folder to one that it includes."""
    left, box, row, step, top = 24, 620, 48, 18, 206
    names = list(reversed(LEVEL))
    row_of = {name: place for place, name in enumerate(names)}
    edges = needed_edges(count_edges(tree))
    lane, n_lanes = lanes(edges, row_of)
    width, height = max(left + box + 30 + step * n_lanes + 24, 900), top + row * len(names) + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="DejaVu Sans,Verdana,sans-serif" font-size="12">',
           '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
           '<path d="M0,0 L8,4 L0,8 z" fill="#5b7fb5"/></marker></defs>',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{left}" y="30" font-size="16" font-weight="bold">The way of the data</text>']
    cell = (width - 2 * left) // len(WAY)
    for place, (what, folder) in enumerate(WAY):
        x = left + cell * place
        out.append(f'<rect x="{x}" y="46" width="{cell - 30}" height="34" rx="5" fill="#f6f1e3" stroke="#b59a5b"/>')
        out.append(f'<text x="{x + (cell - 30) / 2:g}" y="67" text-anchor="middle">{html.escape(what)}</text>')
        if place > 0:
            out.append(arrow([(x - 29, 63), (x - 2, 63)]))
            out.append(f'<text x="{x + (cell - 30) / 2:g}" y="97" text-anchor="middle" fill="#555">by {folder}</text>')
    out += [f'<text x="{left}" y="146" font-size="16" font-weight="bold">The folders</text>',
            f'<text x="{left}" y="168" fill="#555">An arrow: files of the upper folder include files of the lower one. What follows from '
            'other arrows is left out.</text>',
            f'<text x="{left}" y="186" fill="#555">All run downwards; which folder may know which is the table FOLDERS in '
            'scripts/include_graph.py.</text>']
    leaving, arriving = collections.Counter(), collections.Counter()
    for name in names:
        y = top + row * row_of[name]
        out.append(f'<rect x="{left}" y="{y}" width="{box}" height="{row - 12}" rx="5" fill="#eef3fa" stroke="#5b7fb5"/>')
        out.append(f'<text x="{left + 12}" y="{y + 23}" font-weight="bold">{name}</text>')
        purpose = next(purpose for other, purpose, _ in FOLDERS if other == name)
        out.append(f'<text x="{left + 84}" y="{y + 23}" fill="#333">{html.escape(purpose)}</text>')
    for name in names:  # arrows arrive in the upper half of a box and leave from the lower, so that those of inner lanes do not cross others
        for here, places, first, last in (("to", arriving, 15, 4), ("from", leaving, 21, 32)):
            mine = sorted((edge for edge in edges if edge[here == "to"] == name), key=lane.get)
            for place, edge in enumerate(mine):
                places[edge] = first + (last - first) * place // max(len(mine) - 1, 2)
    for edge in edges:
        x = left + box + 24 + step * lane[edge]
        begin, end = top + row * row_of[edge[0]] + leaving[edge], top + row * row_of[edge[1]] + arriving[edge]
        out.append(arrow([(left + box, begin), (x, begin), (x, end), (left + box + 1, end)]))
    out.append("</svg>\n")
    return "\n".join(out)


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].replace("usage: ", "") + "\n")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("--svg-check", type=pathlib.Path)
    given = parser.parse_args(arguments)
    tree = Tree(given.root)
    if not tree.text:
        parser.error(f"{given.root}: no sources in src/ and kernels/")
    if given.counts:
        print_counts(tree)
    elif given.svg:
        given.svg.write_text(svg(tree), encoding="utf-8")
    elif given.svg_check:
        if not given.svg_check.is_file() or given.svg_check.read_text(encoding="utf-8") != svg(tree):
            print(f"{given.svg_check} does not show the includes as they are: make it again with scripts/include_graph.py --svg "
                  f"{given.svg_check}")
            return 1
    else:
        found = list(faults(tree))
        print("\n".join(found) if found else f"{len(tree.text)} files: every include runs downwards, and there is no circle")
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
