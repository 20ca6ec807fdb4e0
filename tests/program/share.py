#!/usr/bin/env python3
"""Optics of single frames that are near share one preparation where the job rounds them: that is said, and the images are nearly the same."""
import json
import sys

import h5py
import numpy
from follow import KNOWN, TRUTH, simulate
from program import check, main, says

ROUND = {"aberrations_rad": 0.1, "rotation_deg": 0.5}
C10 = [-80.0, -80.3, -79.8, -110.0]


def job(optics, name):
    return {"task": "reconstruct", "series": {"files": "s_*_master.h5"}, "optics": optics, "methods": {"phase": {"strength": 0.1}},
            "output": {"file": name, "drift": False}, "compute": {"backend": "cpu"}}


def reconstruct(folder, name, optics, status=0, ranks=None, extra=("--overwrite",)):
    folder.save_job(job(optics, name))
    text = folder.call("run", status=status, ranks=ranks, extra=extra)
    if status:
        return text, None, None, None
    with h5py.File(folder.path / name) as file:
        entry = file["entry"]
        records = [entry[f"optics_{i}"] for i in range(sum(key.startswith("optics_") for key in entry))]
        return (text, entry["phase/phase"][()], [json.loads(record["used"][()]) for record in records],
                [json.loads(record["origin"][()]) for record in records])


def save_optics(folder):
    for frame, defocus in enumerate(C10):
        optics = {**TRUTH, "rotation_deg": 37 + 0.1 * frame, "aberrations": {**TRUTH["aberrations"], "C10_A": defocus}}
        (folder.path / f"s_{frame:03d}_found.json").write_text(json.dumps(optics))


def near_optics_share_one_preparation(folder):
    simulate(folder, len(C10), defocus_step_A=0)
    save_optics(folder)
    _, exact, used, origins = reconstruct(folder, "exact.h5", {"per_frame": "{stem}_found.json"})
    check([optics["aberrations"]["C10_A"] for optics in used] == C10 and "aberrations" not in origins[0], "optics change unasked")
    text, images, used, origins = reconstruct(folder, "shared.h5", {"per_frame": "{stem}_found.json", "round": ROUND})
    check(len(used) == 2, f"{len(used)} preparations")
    check(0 < abs(used[0]["aberrations"]["C10_A"] + 80) <= 2.2 and abs(used[0]["rotation_deg"] - 37) <= 0.5, f"{used[0]}")
    says(origins[0]["aberrations"], "rounded, each by at most 0.1 rad")
    says(origins[0]["rotation_deg"], "rounded, by at most 0.5 degrees")
    says(text, "optics of 4 frames are rounded and make 2 preparations")
    for frame in range(len(C10)):
        alike = numpy.corrcoef(images[frame].ravel(), exact[frame].ravel())[0, 1]
        check(0.995 <= alike < 1, f"frame {frame}: images correlate by {alike}")
    check(reconstruct(folder, "ranks.h5", {"per_frame": "{stem}_found.json", "round": ROUND}, ranks=3)[1].tobytes() == images.tobytes(), "ranks")
    says(folder.call("check"), "4 frames make 2 preparations", "rad at the rim")
    found = json.loads(folder.call("check", extra=["--json"]))
    check(len(found["groups"]) == 2 and 0 < found["rounded_by_rad"] <= 0.1 and 0 < found["rounded_by_deg"] <= 0.5, "check --json")
    finer = {"per_frame": "{stem}_found.json", "round": {"aberrations_rad": 1e-4, "rotation_deg": 1e-3}}
    says(reconstruct(folder, "shared.h5", finer, status=2, extra=("--resume",))[0], "cannot be resumed")


def what_it_needs_is_asked_for(folder):
    simulate(folder, 2, scan_shape=[12, 13], vacancies=0)
    save_optics(folder)
    for rounding, part in (({"rotation_deg": 1}, "/optics/round/aberrations_rad"), ({"aberrations_rad": 0.1}, "/optics/round/rotation_deg"),
                           ({**ROUND, "aberrations_rad": 0}, "/optics/round/aberrations_rad"), ({**ROUND, "C10_A": 3}, "/optics/round/C10_A"),
                           (0.1, "/optics/round")):
        says(reconstruct(folder, "o.h5", {"per_frame": "{stem}_found.json", "round": rounding}, status=2)[0], part)
    (folder.path / "s_001_found.json").write_text(json.dumps({name: KNOWN[name] for name in ("voltage_V", "scan_step_A", "detector_pitch_mrad")}))
    says(reconstruct(folder, "o.h5", {"per_frame": "{stem}_found.json", "round": ROUND}, status=2)[0], "s_001_found.json: /semiangle_mrad: missing")


if __name__ == "__main__":
    sys.exit(main([near_optics_share_one_preparation, what_it_needs_is_asked_for]))
