#!/usr/bin/env python3
"""The matched filter: alone and beside other methods, on several ranks, resumed, and held against where the phase method goes."""
import copy
import sys
import zlib

import h5py
import numpy
from program import COLUMNS, JOB, ROWS, Output, check, main, recording, same, says

N_FRAMES = 3
ORDER = ["phase/phase", "phase/residual", "phase/effective_degrees_of_freedom", "phase/gcv", "phase/chosen_strength", "complex/phase",
         "complex/log_amplitude", "complex/residual", "complex/effective_degrees_of_freedom", "complex/gcv", "complex/chosen_strength",
         "ssb/phase", "ssb/loss", "mf/image", "frames/dose", "frames/data_norm"]
SMOOTH = {"phase": {"strength": [0.1, 1], "smoothness_inv_A": 0.5}, "ssb": {"estimator": "wave"}}


def job(methods, **more):
    return {**copy.deepcopy(JOB), "methods": methods, **more}


def save_series(folder, methods, **more):
    for frame in range(N_FRAMES):
        folder.save(f"frame_{frame}.npy", recording(frame + 1))
    folder.save_job(job(methods, **more))


def with_methods(folder, methods, output, ranks=None, **more):
    folder.save_job(job(methods, **more))
    return folder.run(output=output, ranks=ranks)


def same_images(found, expected, what, names=("mf/image",)):
    for name in names:
        a, b = found.results[name], expected.results[name]
        check(a.shape == b.shape and a.any() and a.tobytes() == b.tobytes(), f"{what}: {name} differs")


def it_stands_alone_and_says_what_it_is(folder):
    save_series(folder, {"mf": {}})
    alone = folder.run()
    image = alone.results["mf/image"]
    check(set(alone.results) == {"mf/image", "frames/dose", "frames/data_norm"}, f"results are {set(alone.results)}")
    check(image.dtype == numpy.float32 and len(image) == N_FRAMES and image.ndim == 3, f"shape {image.shape}, {image.dtype}")
    check((numpy.abs(image).max((1, 2)) > 0).all() and (numpy.abs(image.mean((1, 2))) <= 1e-6 * numpy.abs(image).max((1, 2))).all(), "mean")
    check((alone.results["frames/data_norm"] == 0).all(), "a method with N was asked for")
    with h5py.File(folder.path / "out.h5") as file:
        group = file["entry/mf"]
        check(file["entry"].attrs["default"] in ("mf", b"mf") and group.attrs["signal"] in ("image", b"image"), "not what viewers open")
        check(group["image"].attrs["units"] in ("relative", b"relative"), f"units {group['image'].attrs['units']}")
    says(folder.call("check"), "mf: matched filter, not normalised")
    says(folder.use("info", "out.h5"), "mf")
    folder.use("preview", "out.h5", "--to", "pictures")
    names = [path.name for path in (folder.path / "pictures").iterdir()]
    check(any(name.startswith("mf_frame") and name.endswith(".png") for name in names), f"pictures: {names}")


def ranks_and_backends_agree(folder):
    save_series(folder, {"mf": {}})
    one = folder.run()
    for ranks in (2, 3):
        same(folder.run(output=f"ranks_{ranks}.h5", ranks=ranks), one, slice(None), f"{ranks} ranks")
    exact = folder.run("compute.precision=reference", output="reference.h5").results["mf/image"]
    check(numpy.abs(one.results["mf/image"] - exact).max() <= 2e-6 * numpy.abs(exact).max(), "fast and reference precision")


def methods_do_not_touch_each_other(folder):
    save_series(folder, {"mf": {}})
    for weights in ("uniform", "poisson"):
        for precision in ("fast", "reference"):
            compute = {"backend": "cpu", "precision": precision}
            alone = with_methods(folder, {"mf": {}}, "alone.h5", weights=weights, compute=compute)
            before = with_methods(folder, SMOOTH, "before.h5", weights=weights, compute=compute)
            for ranks in (None, 2):
                what = f"{weights}, {precision}, {ranks or 1} ranks"
                both = with_methods(folder, {**SMOOTH, "mf": {}}, "both.h5", ranks, weights=weights, compute=compute)
                same_images(both, alone, what)
                same_images(both, before, what, [name for name in before.results if not name.endswith("data_norm")])
                check((both.results["frames/data_norm"] == before.results["frames/data_norm"]).all(), f"{what}: data norm")
    rough = with_methods(folder, {"phase": {"strength": 3}, "mf": {}}, "rough.h5", weights="poisson", compute=compute)
    same_images(rough, alone, "without smoothness")


def weights_reach_it(folder):
    save_series(folder, {"mf": {}})
    poisson = folder.run().results["mf/image"]
    uniform = folder.run("weights=uniform", output="uniform.h5").results["mf/image"]
    check(numpy.abs(poisson - uniform).max() > 0.01 * numpy.abs(uniform).max(), "poisson weights change nothing")


def it_is_where_strong_smoothing_goes(folder):
    """x -> b / (strength scale) as the strength grows, with prior 1: docs/physics.md section 10."""
    strength = 1e9
    save_series(folder, {"phase": {"strength": strength}, "mf": {}})
    for weights in ("uniform", "poisson"):
        for upsampling in (1, 2, 3):
            found = folder.run(f"weights={weights}", f"upsampling={upsampling}", "compute.precision=reference")
            expected = found.results["phase/phase"][:, 0].astype("f8") * strength * found.optics["scale_phase"]
            image = found.results["mf/image"]
            difference = numpy.abs(image - expected).max() / numpy.abs(expected).max()
            check(image.shape == (N_FRAMES, ROWS * upsampling, COLUMNS * upsampling) and difference <= 1e-6,
                  f"{weights}, U = {upsampling}: {image.shape}, relative difference {difference}")


def its_bytes_are_in_the_checksum_after_those_before(folder):
    save_series(folder, {**SMOOTH, "mf": {}, "complex": {"strength": 0.2}})
    folder.run()
    with h5py.File(folder.path / "out.h5") as file:
        entry = file["entry"]
        for frame in range(N_FRAMES):
            crc = 0
            for name in ORDER:
                if name in entry:
                    crc = zlib.crc32(entry[name][frame].tobytes(), crc)
            check(crc == entry["frames/crc32"][frame], f"frame {frame}: checksum")


def it_is_resumed(folder):
    save_series(folder, {**SMOOTH, "mf": {}})
    whole = folder.run()
    for ranks in (None, 2):
        with h5py.File(folder.path / "out.h5", "r+") as file:
            file["entry/frames/state"][1] = 0
            for name in ("mf/image", "phase/phase", "ssb/phase"):
                file["entry"][name][1] = 0
            file["entry/mf/image"][2, 0, 0] += 1  # damage that only the checksum shows
        says(folder.call("run", extra=["--resume"], ranks=ranks), "1 of 3 frames done", "2 of 2")
        again = Output(folder.path / "out.h5", "")
        check(again.state() == [1] * N_FRAMES, f"states {again.state()}")
        same(again, whole, slice(None), f"resumed on {ranks or 1} ranks")
    before = (folder.path / "out.h5").read_bytes()
    folder.save_job(job(SMOOTH))
    says(folder.call("run", extra=["--resume"], status=2), "cannot be resumed", "method.mf")
    check((folder.path / "out.h5").read_bytes() == before, "a refused output was changed")


def settings_are_refused(folder):
    save_series(folder, {"mf": {"strength": 1}})
    says(folder.call("check", status=2), "/methods/mf/strength: unknown key; none is known here")
    for value in ("null", "true", "[]", "1"):
        says(folder.call("check", f"methods={{\"mf\":{value}}}", status=2), "/methods/mf: found", "expected an object")


sys.exit(main([it_stands_alone_and_says_what_it_is, ranks_and_backends_agree, methods_do_not_touch_each_other, weights_reach_it,
               it_is_where_strong_smoothing_goes, its_bytes_are_in_the_checksum_after_those_before, it_is_resumed, settings_are_refused]))
