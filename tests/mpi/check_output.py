"""check_output.py FILE [CREATED]: opens an output with h5py only and checks what docs/file-format.md promises.

CREATED is a copy of the file as it was created: everything outside raw data must still be the same bytes."""
import sys
import zlib

import h5py
import numpy as np

RESULTS = ["phase/phase", "phase/residual", "phase/effective_degrees_of_freedom", "phase/gcv", "phase/chosen_strength",
           "complex/phase", "complex/log_amplitude", "complex/residual", "complex/effective_degrees_of_freedom", "complex/gcv", "complex/chosen_strength",
           "ssb/phase", "ssb/loss", "frames/dose", "frames/data_norm"]


def follow_default(file):
    assert file.attrs["NX_class"] == "NXroot"
    entry = file[file.attrs["default"]]
    assert entry.attrs["NX_class"] == "NXentry"
    data = entry[entry.attrs["default"]]
    assert data.attrs["NX_class"] == "NXdata"
    signal = data[data.attrs["signal"]]
    axes = list(data.attrs["axes"])
    assert len(axes) == signal.ndim
    for axis, n in zip(axes, signal.shape):
        assert data[axis].shape == (n,), axis
        assert np.all(np.diff(data[axis][:]) > 0), axis
    assert data["row"].attrs["units"] == "angstrom" and signal.attrs["units"] == "rad"
    return signal


def check_frames(entry):
    states = entry["frames/state"][:]
    crcs = entry["frames/crc32"][:]
    assert list(entry["frames/state"].attrs["values"]) == ["pending", "done", "failed"]
    assert entry["frames/seconds"].shape[1] == len(entry["frames/seconds"].attrs["stages"])
    for i, state in enumerate(states):
        rows = [entry[name][i] for name in RESULTS if name in entry]
        if state == 1:
            crc = 0
            for row in rows:
                crc = zlib.crc32(np.ascontiguousarray(row).tobytes(), crc)
            assert crc == crcs[i], i
            assert np.any(rows[0] != 0)
        if state == 2:
            assert entry["frames/error"].asstr()[i] == "a reason with é"
            assert not any(np.any(row) for row in rows), i
    return states


def no_bad_numbers(name, item):
    if isinstance(item, h5py.Dataset) and item.dtype.kind == "f":
        assert np.all(np.isfinite(item[()])), name


def raw_ranges(file):
    ranges = []

    def visit(_, item):
        if isinstance(item, h5py.Dataset):
            assert item.chunks is None and item.compression is None
            offset = item.id.get_offset()
            assert offset is not None, item.name
            ranges.append((offset, offset + item.id.get_storage_size()))

    file.visititems(visit)
    return ranges


def check_metadata(file, path, created):
    now, then = bytearray(open(path, "rb").read()), bytearray(open(created, "rb").read())
    assert len(now) == len(then), (len(now), len(then))
    for first, last in raw_ranges(file):
        now[first:last] = then[first:last] = bytes(last - first)
    assert now == then, "bytes outside raw data changed after creation"


def check_processes(entry):
    first = entry["process_1"]
    assert first.attrs["NX_class"] == "NXprocess"
    assert first["program"].asstr()[()] == "ptyseries"
    assert first["state"].asstr()[()] in ("finished", "stopped", "running")
    assert "reconstruct" in first["job"].asstr()[()]


with h5py.File(sys.argv[1], "r") as file:
    signal = follow_default(file)
    states = check_frames(file["entry"])
    file.visititems(no_bad_numbers)
    check_processes(file["entry"])
    if len(sys.argv) > 2:
        check_metadata(file, sys.argv[1], sys.argv[2])
    print(f"{signal.name} {signal.shape}: {list(states).count(1)} done, {list(states).count(2)} failed")
