#!/usr/bin/env python3
"""A backend that is handed recordings as they are packed gives the output of one that is handed counts: images, doses, tallies, messages.
usage: packed.py PROGRAM PROGRAM_THAT_TAKES_PACKED_PATTERNS"""
import os
import sys

import h5py
import numpy
from program import COLUMNS, IN_DISC, JOB, ROWS, check, fail, main, recording, same, says

PACKED = os.path.abspath(sys.argv[2])
HOST = "unpacked on the host"
N_FRAMES = 3
SIMULATE = {
    "task": "simulate", "optics": {**JOB["optics"], "detector_pitch_mrad": [3.0, 3.0]},
    "simulate": {"seed": 7, "output_master": "frame_{frame}_master.h5", "frames": N_FRAMES, "scan_shape": [ROWS, COLUMNS],
                 "detector_shape": [20, 18], "object": "random", "phase_rad": 0.05, "dose_per_position": 20000, "dtype": "uint16",
                 "positions_per_file": 20}}


def write_master(folder, frame, counts, chunks=1, **said):
    name = f"frame_{frame}_data_000001.h5"
    with h5py.File(folder.path / name, "w") as data:
        data.create_dataset("entry/data/data", data=counts, chunks=(chunks, *counts.shape[1:]))
    with h5py.File(folder.path / f"frame_{frame}_master.h5", "w") as master:
        master["entry/data/data_000001"] = h5py.ExternalLink(name, "/entry/data/data")
        for place, value in said.items():
            master[f"entry/instrument/detector/{place}"] = value


def save_job(folder, **series):
    folder.save_job({**JOB, "series": {"files": ["frame_*_master.h5"], "scan_shape": [ROWS, COLUMNS], **series}})


def save_plain(folder, write, suffix, dtype="uint16", change=None, **series):
    """A series of files that write(path, counts) makes."""
    folder.save_job({**JOB, "series": {"files": [f"plain_*.{suffix}"], "scan_shape": [ROWS, COLUMNS], **series}})
    for frame in range(N_FRAMES):
        counts = recording(frame + 1, dtype)
        if change and frame == 1:
            change(counts)
        write(folder.path / f"plain_{frame}.{suffix}", counts)


def save_contiguous(path, counts, **how):
    with h5py.File(path, "w", **how) as file:
        file.create_dataset("counts", data=counts.reshape(ROWS, COLUMNS, *counts.shape[1:]))


def save_series(folder, change=None, **said):
    for frame in range(N_FRAMES):
        counts = recording(frame + 1)
        if change and frame == 1:
            change(counts)
        write_master(folder, frame, counts, **said)


def simulate(folder):
    """bitshuffle-LZ4 in several data files."""
    folder.save_job(SIMULATE)
    folder.call("run")
    save_job(folder)


def second_file(folder):
    """Of the second recording; positions 20 to 39."""
    return sorted(folder.path.glob("frame_*_data_000002.h5"))[1]


def both(folder, *settings, status=0, ranks=None, packed=True, environment=None):
    """The two programs' outputs, compared; packed: whether the second one is to have taken packed patterns; None: either."""
    expected = folder.run(*settings, status=status, ranks=ranks)
    plain, folder.program = folder.program, PACKED
    os.environ.update(environment or {})
    found = folder.run(*settings, "compute.unpack=device", status=status, ranks=ranks, output="packed.h5")
    for name in environment or {}:
        del os.environ[name]
    folder.program = plain
    check(found.state() == expected.state(), f"states {found.state()}, expected {expected.state()}")
    done = [i for i, state in enumerate(found.state()) if state == 1]
    if done:
        same(found, expected, done, "packed")
    for name in expected.frames:
        if name in ("error", "note", "n_empty", "n_marked_patterns", "dose") or name.startswith("n_"):
            a, b = found.frames[name], expected.frames[name]
            check(a.tolist() == b.tolist(), f"{name}: {a}, expected {b}")
    if packed is not None and (HOST in found.text) == packed:
        fail(f"packed patterns were {'not ' if packed else ''}taken:\n{found.text}")
    return found


def compressed_series(folder):
    simulate(folder)
    both(folder)
    both(folder, ranks=3)
    both(folder, "compute.precision=fast", environment={"PS_REFUSE": "5"})  # every fifth pattern goes through the host


def uncompressed_series(folder):
    save_job(folder)
    save_series(folder)
    both(folder)


def empty_pattern(counts):
    counts[17] = 0


def arrays(folder):
    """.npy as it lies; other orders of bytes and of axes, and what ends too early, as before."""
    save_plain(folder, numpy.save, "npy")
    both(folder)
    both(folder, ranks=3)
    save_plain(folder, numpy.save, "npy", change=empty_pattern)
    says(both(folder, status=3).error(1), "1 of 42 patterns is empty: position 17")
    for dtype in ("uint16", "uint32"):
        save_plain(folder, lambda path, counts, dtype=dtype: numpy.save(path, counts.astype(numpy.dtype(dtype).newbyteorder(">"))), "npy")
        both(folder, packed=dtype == "uint16")  # 65535 in uint32 may be an invalid-count value of 16 bits
    save_plain(folder, lambda path, counts: numpy.save(path, counts.astype(">u2")), "npy", change=empty_pattern)
    says(both(folder, status=3).error(1), "1 of 42 patterns is empty: position 17")
    save_plain(folder, lambda path, counts: numpy.save(path, numpy.asfortranarray(counts)), "npy")
    both(folder, packed=False)
    save_plain(folder, numpy.save, "npy")
    os.truncate(folder.path / "plain_1.npy", (folder.path / "plain_1.npy").stat().st_size - 3)
    both(folder, status=3)


def contiguous_datasets(folder):
    save_plain(folder, save_contiguous, "h5")
    both(folder)
    save_plain(folder, save_contiguous, "h5", "uint8")
    both(folder)
    save_plain(folder, lambda path, counts: save_contiguous(path, counts.astype(">u2")), "h5")
    both(folder)
    save_plain(folder, lambda path, counts: save_contiguous(path, counts, userblock_size=512), "h5")
    both(folder, packed=False)


def big_endian_chunks(folder):
    save_job(folder)
    for frame in range(N_FRAMES):
        write_master(folder, frame, recording(frame + 1).astype(">u2"))
    both(folder)
    both(folder, ranks=3)


def save_mib(path, counts, first=1, header_bytes=384):
    kind = {1: "U08", 2: "U16", 4: "U32"}[counts.dtype.itemsize]
    with open(path, "wb") as file:
        for number, pattern in enumerate(counts, first):
            header = f"MQ1,{number:06d},{header_bytes:05d},01,{counts.shape[2]:04d},{counts.shape[1]:04d},{kind},   1x1,01,2021-05-07 18:51:10.9,0.1,0,"
            file.write(header.encode().ljust(header_bytes, b"\0") + pattern.astype(pattern.dtype.newbyteorder(">")).tobytes())


def patch(path, at, old, new):
    with open(path, "r+b") as file:
        file.seek(at)
        check(file.read(len(old)) == old, f"{path} does not hold {old} at {at}")
        file.seek(at)
        file.write(new)


def merlin_files(folder):
    """Patterns with headers between them, of any length; a header that is damaged is told as by the reader, in whichever thread it is met."""
    for dtype, header_bytes in (("uint16", 384), ("uint16", 387), ("uint8", 64 + 47)):
        save_plain(folder, lambda path, counts, n=header_bytes: save_mib(path, counts, header_bytes=n), "mib", dtype)
        both(folder, "series.saturation=null")
        both(folder, "series.saturation=null", ranks=3)
    save_plain(folder, save_mib, "mib")
    save_plain(folder, save_mib, "mib", change=lambda counts: counts.__setitem__((slice(None), 0, 0), 5000))  # its counter has 12 bits
    found = both(folder)
    check(found.frames["n_saturated"].tolist() == [0, ROWS * COLUMNS, 0], f"{found.frames['n_saturated']}")
    save_plain(folder, save_mib, "mib")
    path, pattern = folder.path / "plain_1.mib", 384 + 2 * recording(1)[0].size
    at = 23 * pattern
    for where, old, new, words in ((0, b"MQ1,", b"MQ2,", "no MIB header"), (4, b"000024", b"000029", "the one before it 29"),
                                   (11, b"00384", b"00385", "385 bytes: there are 384"), (29, b"U16", b"U64", "pixels of type 'U64'")):
        offset = at + open(path, "rb").read()[at:at + 384].find(old) if old == b"U16" else at + where
        patch(path, offset, old, new)
        found = both(folder, status=3, packed=None)  # the first one is met before anything is put
        check(found.state() == [1, 2, 1], f"states {found.state()}")
        says(found.error(1), "plain_1.mib", words)
        patch(path, offset, new, old)
    both(folder)
    save_plain(folder, lambda path, counts: save_mib(path, counts, first=5), "mib")
    both(folder)
    save_plain(folder, save_mib, "mib", change=empty_pattern)
    says(both(folder, status=3).error(1), "1 of 42 patterns is empty: position 17")


def loaded_ahead(folder):
    """More frames than a batch holds, one damaged, one that leaves pixels of its own out, one with odd patterns: each as it would be alone."""
    n, changes = 9, {4: lambda counts: counts.__setitem__((slice(None, None, 4), *IN_DISC), 65535), 6: empty_pattern}
    save_job(folder)
    for frame in range(n):
        counts = recording(frame + 1)
        changes.get(frame, lambda _: None)(counts)
        write_master(folder, frame, counts)
    path = folder.path / "frame_7_data_000001.h5"
    os.truncate(path, path.stat().st_size - 1000)
    found = both(folder, status=3)
    check(found.state() == [1] * 6 + [2, 2, 1], f"states {found.state()}")
    check(found.frames["n_excluded"].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0], f"{found.frames['n_excluded']}")
    both(folder, ranks=3, status=3)


def damaged_chunk(folder):
    """The frame fails with the words of the decoder on the host, and the others are done."""
    simulate(folder)
    path = second_file(folder)
    with h5py.File(path) as data:
        chunk = data["entry/data/data"].id.get_chunk_info(4)
    with open(path, "r+b") as file:
        file.seek(chunk.byte_offset + 16)
        file.write(b"\xff" * 30)
    found = both(folder, status=3)
    check(found.state() == [1, 2, 1], f"states {found.state()}")
    says(found.error(1), "pattern 24", "damaged LZ4 block")


def file_that_ends(folder):
    simulate(folder)
    path = second_file(folder)
    with h5py.File(path) as data:
        chunk = data["entry/data/data"].id.get_chunk_info(9)
    os.truncate(path, chunk.byte_offset + 5)
    both(folder, status=3)


def saturated_and_marked_pixels(folder):
    """Frame 1 alone holds counts that are none: they are left out there, counted alike, in one more round."""
    def change(counts):
        counts[::4, IN_DISC[0], IN_DISC[1]] = 65535
        counts[3, IN_DISC[0] + 1, IN_DISC[1]] = 40000
        counts[:, 0, 0] = 50000

    save_job(folder)
    save_series(folder, change, saturation_value=30000)
    found = both(folder)
    check(found.frames["n_saturated"][1] == 1 + ROWS * COLUMNS and found.frames["n_excluded"][1] == 2, f"{found.frames}")


def odd_patterns(folder):
    """Empty and marked patterns are told alike; filled ones go through the host."""
    def change(counts):
        counts[17] = 0
        counts[20] = 65535

    save_job(folder)
    save_series(folder, change)
    found = both(folder, status=3)
    says(found.error(1), "1 of 42 patterns is empty: position 17", "series.allow_partial")
    both(folder, "series.allow_partial=true", packed=False)


def patterns_of_one_value(folder):
    def change(counts):
        counts[17] = 7

    save_job(folder)
    save_series(folder, change)
    says(both(folder, status=3).error(1), "1 of 42 patterns is empty: position 17")
    for dtype in ("uint8", ">u2"):
        save_plain(folder, lambda path, counts, dtype=dtype: numpy.save(path, counts.astype(dtype)), "npy", change=change)
        says(both(folder, status=3).error(1), "1 of 42 patterns is empty: position 17")

    def but_for_one(counts):
        """Full of counts; in one pattern all but the last are the same, in another all but two, which are masked."""
        counts[:] += 3
        counts[17] = 7
        counts[17, -1, -1] = 8
        counts[19] = 7
        counts[19, 0, 0] = counts[19, 2, 3] = 65535

    mask = numpy.zeros(recording(1).shape[1:], "uint8")
    mask[0, 0] = mask[2, 3] = 1
    folder.save("mask.npy", mask)
    save_plain(folder, numpy.save, "npy", change=but_for_one, bad_pixels={"mask": "mask.npy"})
    says(both(folder, status=3).error(1), "1 of 42 patterns is empty: position 19")
    save_plain(folder, numpy.save, "npy", change=but_for_one)
    both(folder)


def what_is_read_as_counts(folder):
    save_job(folder)
    for frame in range(N_FRAMES):  # 65535 may be an invalid-count value of 16 bits
        counts = recording(frame + 1, "uint32")
        counts[4, IN_DISC[0], IN_DISC[1]] = 65535
        write_master(folder, frame, counts)
    both(folder, packed=False)
    for frame in range(N_FRAMES):
        write_master(folder, frame, recording(frame + 1), chunks=3)
    both(folder, packed=False)
    for frame in range(N_FRAMES):
        write_master(folder, frame, recording(frame + 1, "int16"))
    both(folder, packed=False)
    for frame in range(N_FRAMES):
        write_master(folder, frame, numpy.repeat(recording(frame + 1), 2, axis=0))
    both(folder, "series.repeats=2", packed=False)


if __name__ == "__main__":
    sys.exit(main([compressed_series, uncompressed_series, arrays, contiguous_datasets, big_endian_chunks, merlin_files, loaded_ahead,
                   damaged_chunk, file_that_ends, saturated_and_marked_pixels, odd_patterns, patterns_of_one_value, what_is_read_as_counts]))
