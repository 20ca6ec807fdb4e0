"""Writes a small series and its job: make_series.py FOLDER N_FRAMES

FOLDER gets frame_NN.npy (random counts, the disc brighter than the rest), optics.json and job.json, whose output is FOLDER/out.h5.
"""
import json
import pathlib
import sys

import numpy as np

SCAN, DETECTOR, CENTRE, RADIUS_PX, PITCH_MRAD = (9, 11), (13, 13), (6.0, 6.0), 5.0, 4.0


def counts(frame):
    generator = np.random.default_rng(frame)
    row, column = np.indices(DETECTOR)
    disc = np.hypot(row - CENTRE[0], column - CENTRE[1]) <= RADIUS_PX
    return generator.poisson(np.where(disc, 40.0, 0.5), SCAN + DETECTOR).astype(np.uint16)


def main(folder, n_frames):
    folder.mkdir(parents=True, exist_ok=True)
    for frame in range(n_frames):
        np.save(folder / f"frame_{frame:02d}.npy", counts(frame))
    optics = {
        "voltage_V": 300000,
        "semiangle_mrad": RADIUS_PX * PITCH_MRAD,
        "scan_step_A": [0.4, 0.4],
        "detector_pitch_mrad": [PITCH_MRAD, PITCH_MRAD],
        "detector_center_px": CENTRE,
        "rotation_deg": 0,
        "aberrations": {"C10_A": -50},
    }
    job = {
        "task": "reconstruct",
        "series": {"files": ["frame_*.npy"]},
        "optics": "optics.json",
        "methods": {"ssb": {"estimator": "wave"}, "phase": {"strength": [0.1, 0.3]}},
        "output": {"file": "out.h5"},
        "compute": {"backend": "cpu"},
    }
    (folder / "optics.json").write_text(json.dumps(optics, indent=1))
    (folder / "job.json").write_text(json.dumps(job, indent=1))


main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
