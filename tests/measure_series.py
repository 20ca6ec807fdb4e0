#!/usr/bin/env python3
"""Seconds a frame of a whole run: recordings in page cache to images in the output, from runs over few and over many frames.
usage: measure_series.py PROGRAM FOLDER [--scan N] [--detector N] [--frames N] [--backend NAME] [--ranks N] CASE...
CASE: compressed (bitshuffle-LZ4 masters, U = 3, ssb, phase x 4, complex x 2), contiguous (the same counts in HDF5, contiguous), or
npy (U = 1, ssb). The patterns are 256 simulated ones, over and over. FOLDER is made, filled, and left."""
import argparse
import json
import multiprocessing
import pathlib
import statistics
import subprocess
import time

import h5py
import numpy

SIDE = 16
METHODS = {"ssb": {}, "phase": {"strength": [0.1, 0.3, 1.0, 3.0]}, "complex": {"strength": [0.3, 1.0]}}
CASES = {"compressed": ("c_*_master.h5", 3, METHODS), "contiguous": ("p_*.h5", 3, METHODS), "npy": ("n_*.npy", 1, {"ssb": {}})}
OPTICS = {"voltage_V": 300000, "semiangle_mrad": 30, "scan_step_A": [0.373, 0.373], "rotation_deg": 176.3, "aberrations": {"C10_A": -80}}


def call(a, name, job, ranks=1):
    path = a.folder / name
    path.write_text(json.dumps(job))
    command = [a.program, "run", path, "--overwrite"]
    begin = time.monotonic()
    done = subprocess.run((["mpirun", "-n", str(ranks)] if ranks > 1 else []) + command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return time.monotonic() - begin


def simulate(a):
    """256 packed patterns, and their counts."""
    pitch = 30 / (54.4 * a.detector / 192)
    a.optics = {**OPTICS, "detector_pitch_mrad": [pitch, pitch], "detector_center_px": [a.detector / 2 - 0.5] * 2}
    call(a, "simulate.json", {
        "task": "simulate", "optics": a.optics, "simulate": {
            "seed": 3, "output_master": str(a.folder / "few_{frame}_master.h5"), "frames": 1, "scan_shape": [SIDE, SIDE],
            "detector_shape": [a.detector] * 2, "object": "random", "phase_rad": 0.1, "dose_per_position": 90000, "dtype": "uint16"}})
    with h5py.File(next(a.folder.glob("few_*_data_000001.h5"))) as file:
        data = file["entry/data/data"]
        return [data.id.read_direct_chunk((i, 0, 0))[1] for i in range(SIDE**2)], data.id.get_create_plist(), pathlib.Path(file.filename)


def write_compressed(folder, number, scan, detector, chunks, few):
    """A data file of which every chunk is one of the few; the filter stands in the creation properties of the simulated one."""
    name = f"c_{number}_data_000001.h5"
    with h5py.File(few) as old, h5py.File(folder / name, "w") as file:
        plist = old["entry/data/data"].id.get_create_plist()
        group = file.create_group("entry/data")
        data = h5py.h5d.create(group.id, b"data", h5py.h5t.NATIVE_UINT16, h5py.h5s.create_simple((scan**2, detector, detector)), plist)
        for i in range(scan**2):
            data.write_direct_chunk((i, 0, 0), chunks[(i + number) % len(chunks)])
    with h5py.File(folder / f"c_{number}_master.h5", "w") as master:
        master["entry/data/data_000001"] = h5py.ExternalLink(name, "/entry/data/data")


def write_plain(folder, number, scan, detector, suffix):
    """Random counts, which no reader of plain files looks at."""
    some = numpy.random.default_rng(number).poisson(10, (SIDE**2, detector, detector)).astype(numpy.uint16)
    shape = (scan, scan, detector, detector)
    if suffix == "npy":
        data = numpy.lib.format.open_memmap(folder / f"n_{number}.npy", "w+", numpy.uint16, shape)
        offset, path = data.offset, folder / f"n_{number}.npy"
        del data
    else:
        path = folder / f"p_{number}.h5"
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        with h5py.File(path, "w") as file:
            offset = h5py.h5d.create(file.id, b"counts", h5py.h5t.NATIVE_UINT16, h5py.h5s.create_simple(shape), plist).get_offset()
    with open(path, "r+b") as file:
        file.seek(offset)
        for _ in range(scan**2 // SIDE**2):
            file.write(some)


def fill(a, case, n):
    with multiprocessing.Pool(8) as pool:
        if case == "compressed":
            chunks, _, few = simulate(a)
            pool.starmap(write_compressed, [(a.folder, i, a.scan, a.detector, chunks, few) for i in range(n)])
        else:
            pool.starmap(write_plain, [(a.folder, i, a.scan, a.detector, "npy" if case == "npy" else "h5") for i in range(n)])


def measure(a, case, n):
    files, upsampling, methods = CASES[case]
    stem, tail = files.split("*")
    job = {"task": "reconstruct", "optics": a.optics, "upsampling": upsampling, "methods": methods, "output": {"file": str(a.folder / "o.h5")},
           "series": {"files": [str(a.folder / f"{stem}{i}{tail}") for i in range(n)], "scan_shape": [a.scan, a.scan]},
           "compute": {"backend": a.backend}}
    return call(a, "job.json", job, a.ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scan", type=int, default=512)
    parser.add_argument("--detector", type=int, default=192)
    parser.add_argument("--frames", type=int, default=10)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("cases", nargs="+", choices=CASES)
    a = parser.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    simulate(a)
    for case in a.cases:
        begin = time.monotonic()
        fill(a, case, a.frames)
        print(f"{case}: {a.frames} recordings written in {time.monotonic() - begin:.1f} s", flush=True)
        few = 2
        seconds = []
        for _ in range(a.repeats):
            short, long = measure(a, case, few), measure(a, case, a.frames)
            seconds.append((long - short) / (a.frames - few))
            print(f"  {few} frames {short:.2f} s, {a.frames} frames {long:.2f} s", flush=True)
        with h5py.File(a.folder / "o.h5") as output:
            rows = output["entry/frames/seconds"][:]
            stages = dict(zip(["read", "put", "prepare", "reduce", "solve", "ssb", "write"], numpy.median(rows, axis=0)))
        print(f"{case}: {statistics.median(seconds):.3f} s a frame ({min(seconds):.3f} to {max(seconds):.3f}); median seconds by stage: "
              + ", ".join(f"{name} {value:.3f}" for name, value in stages.items()), flush=True)
        for path in a.folder.glob(CASES[case][0].replace("master", "*")):
            path.unlink()


if __name__ == "__main__":
    main()
