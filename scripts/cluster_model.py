#!/usr/bin/env python3
"""What a cluster gives a run of many ranks: a discrete-event simulation of ranks that share one counter, one file system and one log.

usage: cluster_model.py [--costs FILE] [--svg FILE] [--ranks N ...] [--change S] [--latency S] [--line S] [--small-write S] [--read-GB-s X] [--write-GB-s X]

--costs FILE: what tests/mpi/cluster_costs printed on a machine, one line a run, of which the median counts; options override it. A change
of the counter takes its server as long as one of all ranks' changes takes when all ask at once, and the rank that asks as long as one
takes when nobody else asks. Bandwidths of the file system are the cluster's and are stated, not measured.

A rank does what src/tasks/reconstruct/work_loop.c does: it asks the counter CHANGES_A_FRAME times, reads the next frame while it computes
this one, writes the result, and when nothing is left looks again and again whether the others are finished, CHANGES_A_LOOK changes each.
Each of the three servers deals with one request after the other; a request waits until those before it are served."""
import argparse
import heapq
import html
import json
import math
import statistics

CHANGES_A_FRAME = 12  # remaining 2, claim 3, suspect 1, the same for the frame ahead but one suspect, begun, ended, completed
CHANGES_A_LOOK = 12  # remaining 2, claim 4, state 6
WRITES_A_FRAME = 30  # places of one frame in the output: results, columns of its row, states
KINDS = {  # seconds of computing, bytes read, bytes written of a frame
    "CPU rank: 2 s a frame, 0.3 GB in, 20 MB out": (2.0, 0.3e9, 20e6),
    "GPU rank: 0.15 s a frame, 2.3 GB in, 66 MB out": (0.15, 2.3e9, 66e6),
}
FRAMES_A_RANK = 8


class Server:
    """Serves one request after the other."""

    def __init__(self):
        self.free_s = self.busy_s = 0.0

    def serve(self, at_s, service_s):
        begin_s = max(at_s, self.free_s)
        self.free_s = begin_s + service_s
        self.busy_s += service_s
        return self.free_s


def old_pause(ranks):
    return 0.02


def new_pause(ranks):
    """See pause_between_looks in work_loop.c."""
    return max(0.02, ranks / 10000)


def simulate(ranks, kind, costs, pause=new_pause, log_every_frame=False):
    """The run's seconds and the busy shares of its servers."""
    compute_s, read_bytes, write_bytes = kind
    counter, reading, writing, log = Server(), Server(), Server(), Server()
    n_frames = FRAMES_A_RANK * ranks
    state = {"next": 0, "done": 0, "end_s": None}
    ready_s = [0.0] * ranks  # when the frame that a rank has claimed is read
    events = [(1e-6 * rank, rank, "claim") for rank in range(ranks)]
    heapq.heapify(events)
    n_looks = 0

    def read(at_s):
        return reading.serve(at_s, read_bytes / costs["read_B_s"])

    def ask(at_s, n_changes):
        served_s = counter.serve(at_s, n_changes * costs["change_s"])
        return max(served_s, at_s + n_changes * costs["latency_s"])

    while events:
        at_s, rank, what = heapq.heappop(events)
        if what == "claim":
            at_s = ask(at_s, CHANGES_A_FRAME)
            if state["next"] >= n_frames:
                heapq.heappush(events, (at_s, rank, "look"))
                continue
            state["next"] += 1
            # a frame's jitter of a fifth, always the same for the same frame
            own_s = compute_s * (0.9 + 0.2 * ((state["next"] * 7919) % 101) / 100)
            begin_s = max(at_s, ready_s[rank] or read(at_s))
            ready_s[rank] = read(begin_s) if state["next"] + ranks <= n_frames else 0.0
            heapq.heappush(events, (begin_s + own_s, rank, "write"))
        elif what == "write":
            at_s = writing.serve(at_s, write_bytes / costs["write_B_s"] + WRITES_A_FRAME * costs["lock_s"])
            if log_every_frame:
                at_s = log.serve(at_s, costs["line_s"])
            heapq.heappush(events, (at_s, rank, "complete"))
        elif what == "complete":
            at_s = ask(at_s, 1)
            state["done"] += 1
            if state["done"] == n_frames:
                state["end_s"] = at_s
            heapq.heappush(events, (at_s, rank, "claim"))
        else:
            n_looks += 1
            at_s = ask(at_s, CHANGES_A_LOOK)
            if state["done"] < n_frames:
                heapq.heappush(events, (at_s + pause(ranks), rank, "look"))
            else:
                state["end_s"] = max(state["end_s"], at_s)
    end_s = state["end_s"]
    servers = (("counter", counter), ("reading", reading), ("writing", writing), ("log", log))
    return {"seconds": end_s, "frames_s": n_frames / end_s, "efficiency": FRAMES_A_RANK * compute_s / end_s, "looks": n_looks,
            **{name: min(1.0, server.busy_s / end_s) for name, server in servers}}


# ---- what it comes to ----------------------------------------------------------------------------------------------------------------


def bound(found):
    name = max(("counter", "reading", "writing", "log"), key=found.get)
    return f"{name} {100 * found[name]:.0f} %" if found[name] > 0.5 else "computing"


def table(ranks, costs):
    for name, kind in KINDS.items():
        print(f"\n### {name}\n")
        print("| ranks | frames/s | of the ideal | counter | reading | writing | log, a line a frame | bound by | looks each 20 ms |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for n in ranks:
            found, old = simulate(n, kind, costs, log_every_frame=True), simulate(n, kind, costs, old_pause, True)
            shares = " | ".join(f"{100 * found[key]:.1f} %" for key in ("counter", "reading", "writing", "log"))
            print(f"| {n} | {found['frames_s']:.3g} | {100 * found['efficiency']:.0f} % | {shares} | {bound(found)} | "
                  f"{old['frames_s']:.3g}/s, counter {100 * old['counter']:.0f} % |")


COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")


def plot(title, x_label, y_label, x, curves, left):
    """One log-log plot as a group of an SVG."""
    ys = [y for values in curves.values() for y in values if y > 0]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    x0, x1 = math.log10(x[0]), math.log10(x[-1])

    def px(value):
        return 70 + 300 * (math.log10(value) - x0) / (x1 - x0)

    def py(value):
        return 280 - 240 * (math.log10(value) - low) / max(1, high - low)

    out = [f'<g transform="translate({left} 0)"><text class="title" x="70" y="20">{html.escape(title)}</text>']
    for power in range(low, high + 1):
        out.append(f'<path class="grid" d="M70 {py(10.0 ** power):.1f}H370"/><text x="64" y="{py(10.0 ** power) + 4:.1f}" text-anchor="end">{10.0 ** power:g}</text>')
    for power in range(math.ceil(x0), math.floor(x1) + 1):
        out.append(f'<path class="grid" d="M{px(10.0 ** power):.1f} 40V280"/><text x="{px(10.0 ** power):.1f}" y="296" text-anchor="middle">{10 ** power}</text>')
    out.append(f'<text x="220" y="314" text-anchor="middle">{html.escape(x_label)}</text>')
    out.append(f'<text transform="translate(16 160) rotate(-90)" text-anchor="middle">{html.escape(y_label)}</text><path class="axis" d="M70 40V280H370"/>')
    for i, (name, values) in enumerate(curves.items()):
        points = " ".join(f"{px(a):.1f},{py(b):.1f}" for a, b in zip(x, values) if b > 0)
        out.append(f'<polyline fill="none" stroke="{COLOURS[i % 4]}" stroke-width="1.8" points="{points}"/>')
        out.append(f'<rect x="382" y="{44 + 18 * i}" width="10" height="10" fill="{COLOURS[i % 4]}"/><text x="397" y="{53 + 18 * i}">{html.escape(name)}</text>')
    return "".join(out) + "</g>\n"


def draw(path, ranks, costs):
    parts = []
    for i, (name, kind) in enumerate(KINDS.items()):
        found, slow = [simulate(n, kind, costs) for n in ranks], [simulate(n, kind, {**costs, "read_B_s": costs["read_B_s"] / 10}) for n in ranks]
        curves = {"ideal": [n / kind[0] for n in ranks], f"{costs['read_B_s'] / 1e9:g} GB/s in": [f["frames_s"] for f in found], f"{costs['read_B_s'] / 1e10:g} GB/s in": [f["frames_s"] for f in slow],}
        parts.append(plot(name, "ranks", "frames a second", ranks, curves, 520 * i))
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1040 325" width="1040" height="325"><style>text{font:11px system-ui,'
                   'sans-serif;fill:#333}.title{font-weight:600;font-size:12px}.grid{stroke:#e4e4e4}.axis{stroke:#333;fill:none}</style>'
                   '<rect width="1040" height="325" fill="#fff"/>\n' + "".join(parts) + "</svg>\n")


def read_costs(path):
    with open(path, encoding="utf-8") as file:
        runs = [json.loads(line) for line in file if line.strip()]

    def median(of):
        return statistics.median(map(of, runs))

    return {"change_s": median(lambda run: run["change_all_s"] / run["ranks"]), "latency_s": median(lambda run: run["change_alone_s"]),
            "line_s": median(lambda run: run["line_all_s"] / run["ranks"]), "lock_s": median(lambda run: run["small_all_s"] / run["ranks"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--costs")
    parser.add_argument("--svg")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 3, 10, 30, 100, 300, 1000, 3000])
    parser.add_argument("--change", type=float)
    parser.add_argument("--latency", type=float)
    parser.add_argument("--line", type=float)
    parser.add_argument("--small-write", type=float)
    parser.add_argument("--read-GB-s", type=float, default=100, dest="read")
    parser.add_argument("--write-GB-s", type=float, default=50, dest="write")
    given = parser.parse_args()
    measured = read_costs(given.costs) if given.costs else {}
    costs = {"change_s": given.change or measured.get("change_s", 3e-6), "latency_s": given.latency or measured.get("latency_s", 1e-5),
             "line_s": given.line or measured.get("line_s", 3e-6), "lock_s": given.small_write or measured.get("lock_s", 1e-5),
             "read_B_s": 1e9 * given.read, "write_B_s": 1e9 * given.write}
    print("constants: " + ", ".join(f"{name} {value:.3g}" for name, value in costs.items()))
    table(given.ranks, costs)
    if given.svg:
        draw(given.svg, given.ranks, costs)


if __name__ == "__main__":
    main()
