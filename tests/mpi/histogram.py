#!/usr/bin/env python3
"""Histogram jobs against NumPy, on every dtype, on 1, 2, 3 and 5 ranks; masks, bands of rows, failures, resume.

usage: histogram.py PROGRAM [DTYPE ...]; only these types on several ranks, and nothing else, when types are given
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy

SCAN, DETECTOR = (9, 17), (13, 11)
N_POSITIONS = SCAN[0] * SCAN[1]
RANGES = {"uint8": (3, 200), "uint16": (4171, 5744), "uint32": (1e5, 3e9), "int8": (-100, 90), "int16": (-3000, 20000),
          "int32": (-1e6, 1.5e9), "float32": (-7.25, 31.5), "float64": (0.1, 0.7)}


def run(program, job, ranks=None, status=0, command="run", extra=()):
    launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    done = subprocess.run([*launcher, program, command, str(job), *extra], capture_output=True, text=True, timeout=120)
    if done.returncode != status:
        sys.exit(f"{command} {job.name} on {ranks} ranks: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def write_job(folder, name, histogram, files, **more):
    job = {"task": "histogram", "series": {"files": files, "scan_shape": list(SCAN), **more.pop("series", {})}, "histogram": histogram,
           "output": {"file": f"{name}.h5"}, **more}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(job))
    return path


def load(path):
    with h5py.File(path, "r") as file:
        return {f"{group}/{name}": data[()] for group in ("histogram", "frames") for name, data in file["entry"][group].items()}


def require(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def draw(dtype, n, seed):
    """Values inside, outside, at the ends, on edges, extremes; for floats what is not finite."""
    generator = numpy.random.default_rng(seed)
    low, high = RANGES[dtype]
    values = generator.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), (n, *DETECTOR))
    values[generator.random(values.shape) < 0.1] = low
    values[generator.random(values.shape) < 0.1] = high
    on_edge = generator.random(values.shape) < 0.2
    values[on_edge] = (low + (high - low) / 37 * generator.integers(0, 38, values.shape))[on_edge]
    if dtype.startswith("f"):
        for special in (numpy.nan, numpy.inf, -numpy.inf):
            values[generator.random(values.shape) < 0.02] = special
        return values.astype(dtype)
    limits = numpy.iinfo(dtype)
    return numpy.clip(numpy.rint(values), limits.min, limits.max).astype(dtype)


def expected_counts(values, bins, limits):
    counts = numpy.zeros((*values.shape[1:], bins), "u8")
    for index in numpy.ndindex(values.shape[1:]):
        column = values[(slice(None), *index)]
        counts[index] = numpy.histogram(column[numpy.isfinite(column)], bins=bins, range=limits)[0]
    return counts


def check_counts(found, values, bins, limits, what):
    finite = numpy.isfinite(values)
    require(numpy.array_equal(found["histogram/histogram"], expected_counts(values, bins, limits)), f"{what}: counts")
    edges = numpy.histogram(values[:1, 0, 0][:0], bins=bins, range=limits)[1]
    require(numpy.array_equal(found["histogram/edges"], edges), f"{what}: edges")
    low, high = edges[0], edges[-1]
    with numpy.errstate(invalid="ignore"):
        require(numpy.array_equal(found["histogram/underflow"], (finite & (values < low)).sum(0)), f"{what}: underflow")
        require(numpy.array_equal(found["histogram/overflow"], (finite & (values > high)).sum(0)), f"{what}: overflow")
    require(numpy.array_equal(found["histogram/nonfinite"], (~finite).sum(0)), f"{what}: nonfinite")
    masked = numpy.ma.masked_array(values.astype("f8"), ~finite)
    for name, wanted in {"mean": masked.mean(0), "variance": masked.var(0)}.items():
        difference = numpy.abs(found[f"histogram/{name}"] - wanted).max()
        require(difference <= 1e-7 * numpy.abs(wanted).max(), f"{what}: {name} differs by {difference}")
    require(numpy.array_equal(found["histogram/minimum"], masked.min(0)), f"{what}: minimum")
    require(numpy.array_equal(found["histogram/maximum"], masked.max(0)), f"{what}: maximum")


def dtypes(program, folder, wanted):
    for seed, (dtype, limits) in enumerate(RANGES.items()):
        if dtype not in wanted:
            continue
        parts = [draw(dtype, N_POSITIONS, [seed, part]) for part in range(2)]
        for part, values in enumerate(parts):
            numpy.save(folder / f"{dtype}_{part}.npy", values)
        job = write_job(folder, dtype, {"bins": 37, "range": limits}, [f"{dtype}_*.npy"])
        run(program, job)
        found = load(folder / f"{dtype}.h5")
        check_counts(found, numpy.concatenate(parts), 37, limits, dtype)
        doses = [part[numpy.isfinite(part)].astype("f8").sum() / N_POSITIONS for part in parts]
        require(numpy.allclose(found["frames/dose"], doses, rtol=1e-7, atol=0), f"{dtype}: dose")
        for ranks in (1, 2, 3, 5):
            run(program, job, ranks, extra=["--overwrite"])
            again = load(folder / f"{dtype}.h5")
            for name, value in found.items():
                same = numpy.asarray(value).tobytes() == numpy.asarray(again[name]).tobytes()
                require(same or name == "frames/device", f"{dtype}: {name} on {ranks} ranks")
    print(f"{', '.join(wanted)} as NumPy counts, the same bytes on 1, 2, 3 and 5 ranks; on {found['frames/device'].decode()}")


def options(program, folder):
    values = numpy.concatenate([numpy.load(folder / f"uint16_{part}.npy") for part in range(2)])
    bands = write_job(folder, "bands", {"bins": 4000, "range": RANGES["uint16"]}, ["uint16_*.npy"], compute={"memory_budget_GiB": 0.001})
    text = run(program, bands, 2)
    require("do not fit" in text, f"a small budget makes bands:\n{text}")
    check_counts(load(folder / "bands.h5"), values, 4000, RANGES["uint16"], "bands")

    part = write_job(folder, "part", {"bins": 20, "range": [4000, 6000], "stride": 4, "region": {"rows": [2, 9], "columns": [3, 10]}},
                     ["uint16_*.npy"])
    run(program, part, 3)
    strided = numpy.concatenate([values[:N_POSITIONS:4], values[N_POSITIONS::4]])[:, 2:9, 3:10]
    check_counts(load(folder / "part.h5"), strided, 20, (4000, 6000), "region and stride")

    fine = numpy.concatenate([numpy.load(folder / f"uint8_{part}.npy") for part in range(2)])
    run(program, write_job(folder, "fine", {"bins": 256, "range": [0, 256]}, ["uint8_*.npy"]), 3)
    found = load(folder / "fine.h5")
    require(numpy.array_equal(found["histogram/median"], numpy.median(fine, axis=0)), "medians of bins one count wide")
    mode = numpy.argmax(expected_counts(fine, 256, (0, 256)), axis=-1)
    require(numpy.array_equal(found["histogram/mode"], mode), "modes of bins one count wide")

    median = write_job(folder, "median", {"bins": 64, "range": "auto", "centre": "median", "sample": 1000000}, ["uint16_*.npy"])
    run(program, median, 2)
    found = load(folder / "median.h5")
    wanted = numpy.sort(values, axis=0)[(len(values) - 1) // 2].astype("i8")
    require(numpy.array_equal(found["histogram/centre"], wanted), "medians")
    centred = values - wanted
    width = -(-(int(centred.max() - centred.min()) + 1) // 64)
    check_counts(found, centred, 64, (int(centred.min()), int(centred.min()) + 64 * width), "centred on medians")

    numpy.save(folder / "pedestal.npy", wanted.astype("f4") + 0.25)
    pedestal = write_job(folder, "pedestal", {"bins": 50, "range": [-900, 900], "centre": "pedestal.npy"}, ["uint16_*.npy"])
    run(program, pedestal)
    check_counts(load(folder / "pedestal.h5"), centred, 50, (-900, 900), "centred on a file")
    print("bands, region, stride, medians, automatic range and pedestal file agree with NumPy")


def masks(program, folder):
    generator = numpy.random.default_rng(5)
    counts = generator.poisson(20, (N_POSITIONS, *DETECTOR)).astype("u2")
    counts[:, 3, 4] = 0
    counts[:, 6, 2] += 300
    counts[:, 9, 8] = generator.choice([0, 40], N_POSITIONS)
    counts[::50, 11, 1] = 65535
    numpy.save(folder / "masks.npy", counts)
    given = numpy.zeros(DETECTOR, "u1")
    given[0, 10] = 1
    numpy.save(folder / "given.npy", given)
    job = write_job(folder, "masks", {"bins": 100, "range": [0, 100]}, ["masks.npy"], series={"bad_pixels": {"mask": "given.npy"}})
    run(program, job, 2)
    mask = load(folder / "masks.h5")["histogram/mask"]
    planted = {(3, 4): 2, (9, 8): 4, (0, 10): 16}
    for place, bits in planted.items():
        require(mask[place] == bits, f"pixel {place} has mask {mask[place]}, expected {bits}")
    require(mask[6, 2] & 1, "the hot pixel is found")
    require(mask[11, 1] & 8, "the saturated pixel is found")
    require(numpy.count_nonzero(mask) == 5, f"{numpy.count_nonzero(mask)} masked pixels, expected 5:\n{mask}")
    optics = {"voltage_kV": 300, "semiangle_mrad": 6, "scan_step_A": [1, 1], "detector_pitch_mrad": [1.5, 1.5], "detector_center_px": [6, 5], "rotation_deg": 0, "aberrations": {}}
    reconstruct = folder / "reconstruct.json"
    reconstruct.write_text(json.dumps({"task": "reconstruct", "series": {"files": ["masks.npy"], "scan_shape": list(SCAN),
                                       "bad_pixels": {"mask": "masks.h5:/entry/histogram/mask"}}, "optics": optics, "methods": {"ssb": {}},
                                       "output": {"file": "reconstruct.h5"}}))
    text = run(program, reconstruct, command="check")
    require("5 by the mask file" in text, f"a reconstruct job reads the mask:\n{text}")
    print("planted pixels are masked, and a reconstruct job reads the mask")

    text = run(program, folder / "masks.h5", command="preview", extra=["--pixel", "6,2", "--to", str(folder / "pictures")])
    pictures = sorted(path.name for path in (folder / "pictures").glob("*.png"))
    require(pictures == ["mask.png", "mean.png", "median.png", "pixel_6_2.png", "total.png", "variance.png"], f"pictures: {pictures}\n{text}")
    report = (folder / "pictures" / "report.html").read_text()
    require(report.count("data:image/png") == len(pictures) and "masks.npy" in report, "the report embeds the pictures and names the recording")
    text = run(program, folder / "masks.h5", command="info")
    require("1 dead, 2 noisy" in text and "100 bins from 0 to 100" in text, f"info:\n{text}")
    text = run(program, folder / "masks.h5", command="preview", status=2, extra=["--pixel", "13,0", "--to", str(folder / "pictures")])
    require("13,0" in text, f"a pixel that is not there is refused:\n{text}")
    print("pictures, report and info show it")


def exchanged(program, folder):
    """The refusal names the recordings that differ, then and now, and no other; moved ones that hold the same do not differ."""
    recordings = [numpy.full((N_POSITIONS, *DETECTOR), value, "u2") for value in (3, 4, 5)]
    for i, counts in enumerate(recordings):
        numpy.save(folder / f"named_{i}.npy", counts)
    job = write_job(folder, "named", {"bins": 10, "range": [0, 10]}, ["named_*.npy"])
    run(program, job)
    (folder / "named_0.npy").rename(folder / "named_00.npy")
    (folder / "named_1.npy").rename(folder / "named_1 = b.npy")
    for n in (1, 3):
        require("complete already" in run(program, job, n, extra=["--resume"]), "moved recordings that hold the same differ")
    numpy.save(folder / "named_1 = b.npy", recordings[1] + 1)
    for n in (1, 3):
        text = run(program, job, n, status=2, extra=["--resume"])
        require(f"frame 1: was {folder / 'named_1.npy'}: 1 files, " in text and f", now {folder / 'named_1 = b.npy'}: 1 files, " in text,
                f"the recordings that differ are named:\n{text}")
        require("named_0" not in text and "named_2" not in text, f"recordings that do not differ are named:\n{text}")
    (folder / "named_2.npy").unlink()
    text = run(program, job, status=2, extra=["--resume"])
    require(f"frame 2: was {folder / 'named_2.npy'}: 1 files" in text and "now is not there" in text, f"a recording that is gone is named:\n{text}")


def failures(program, folder):
    numpy.save(folder / "empty.npy", numpy.zeros((N_POSITIONS, *DETECTOR), "u2"))
    text = run(program, write_job(folder, "empty", {"bins": 10, "range": "auto"}, ["empty.npy"]))
    require("is empty" in text and "every value of every pixel is 0" in text, f"an empty recording is reported:\n{text}")
    require(load(folder / "empty.h5")["frames/dose"] == 0, "an empty recording has no dose")

    job = write_job(folder, "broken", {"bins": 10, "range": [4000, 6000]}, ["uint16_*.npy"])
    whole = (folder / "uint16_1.npy").read_bytes()
    (folder / "uint16_1.npy").write_bytes(whole[:-100])
    run(program, job, 3, status=3)
    found = load(folder / "broken.h5")
    require(list(found["frames/state"]) == [1, 2] and b"uint16_1" in found["frames/error"][1], "the broken recording is failed, with its reason")
    require(found["histogram/total"].sum() > 0, "the other recording is counted")
    text = run(program, job, 2, status=2)
    require("exists already" in text, "an existing output is refused")
    text = run(program, job, status=3, extra=["--resume"])
    require("complete already" in text and f"1 frames of it failed, the first: frame 1 ({folder / 'uint16_1.npy'})" in text, f"a complete output is left alone:\n{text}")
    run(program, job, status=3, extra=["--resume", "--retry-failed"])
    (folder / "uint16_1.npy").write_bytes(whole)
    text = run(program, job, status=2, extra=["--resume", "--set", "histogram.bins=11"])
    require("differs" in text, f"another job's output is refused:\n{text}")
    exchanged(program, folder)
    text = run(program, job, status=2, extra=["--set", "histogram.region={\"rows\":[0,99],\"columns\":[0,2]}", "--overwrite"])
    require("/histogram/region" in text and "13 x 11" in text, f"a region over the edge is refused:\n{text}")
    stopped = write_job(folder, "stopped", {"bins": 10, "range": [4000, 6000]}, ["uint16_*.npy"])
    run(program, stopped, 2, status=75, extra=["--max-hours", "1e-9"])
    require(not list(folder.glob("stopped.h5*")), "a stopped run leaves nothing behind")
    text = run(program, job, status=2, command="check", extra=["--set", "histogram.region={\"rows\":[0,99],\"columns\":[0,2]}"])
    require("/histogram/region" in text, f"check says so too:\n{text}")
    (folder / "none.npy").write_bytes(whole[:-100])
    gone = write_job(folder, "gone", {"bins": 10, "range": [0, 9]}, ["none.npy"])
    run(program, gone, 2, status=4)
    require(not list(folder.glob("gone.h5*")), "nothing is left behind when nothing could be read")
    print("empty and broken recordings, existing outputs and wrong jobs end as documented")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="ptyseries-histogram-") as name:
        folder = Path(name)
        dtypes(program, folder, sys.argv[2:] or list(RANGES))
        if sys.argv[2:]:
            return 0
        options(program, folder)
        masks(program, folder)
        failures(program, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
