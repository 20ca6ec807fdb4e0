#!/usr/bin/env python3
"""Float64 answers for small cases, computed by plain numpy straight from docs/physics.md, independently of the program.

    oracle.py DIRECTORY [NAME ...]   writes the named cases (all without names) as DIRECTORY/NAME.h5
    oracle.py --list                 names the cases and what each is for

The files have the layout of the stored reference cases: `counts`, attributes with optics and options, and `expected/`. Beyond
those they may hold `bad` (pixels left out), and every strength group carries `residual` and `influence` (full plane but zero).
Nothing here is written for speed, and no half-plane trick is used: the full plane is solved frequency by frequency. With the mirrored
probe the two half-planes disagree, so that such a case holds systems, but no images.
"""
import json
import sys

import h5py
import numpy as np

ORDERS = [(1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2), (3, 4), (4, 1), (4, 3), (4, 5), (5, 0), (5, 2), (5, 4), (5, 6)]


def wavelength_A(voltage_V):
    m, e, c, h = 9.1093837015e-31, 1.602176634e-19, 299792458.0, 6.62607015e-34
    return 1e10 * h / np.sqrt(2 * m * e * voltage_V * (1 + e * voltage_V / (2 * m * c * c)))


class Probe:
    """Sections 1 to 3 for one optics; k and q in 1/Angstrom."""

    def __init__(self, optics, mirrored=False):
        self.optics, self.mirrored = optics, mirrored
        self.wavelength = wavelength_A(optics["voltage_V"])
        self.tilt = np.array(optics.get("tilt_mrad", [0, 0])) * 1e-3
        self.thickness = optics.get("thickness_A", 0.0)

    def k(self, shape):
        (cu, cv), (pu, pv) = self.optics["detector_center_px"], self.optics["detector_pitch_mrad"]
        u, v = np.meshgrid(np.arange(shape[0]), np.arange(shape[1]), indexing="ij")
        row, column = (u - cu) * pu * 1e-3 / self.wavelength, (v - cv) * pv * 1e-3 / self.wavelength
        if self.optics.get("detector_transpose"):
            row, column = column, row
        flip = self.optics.get("detector_flip", [False, False])
        row, column = (-row if flip[0] else row), (-column if flip[1] else column)
        t = np.deg2rad(self.optics["rotation_deg"])
        return row * np.cos(t) - column * np.sin(t), row * np.sin(t) + column * np.cos(t)

    def chi(self, row, column):
        alpha, phi, total = self.wavelength * np.hypot(row, column), np.arctan2(column, row), 0.0
        for n, m in ORDERS:
            C = self.optics["aberrations"].get(f"C{n}{m}_A", 0.0)
            angle = self.optics["aberrations"].get(f"phi{n}{m}_rad", 0.0)
            total = total + alpha ** (n + 1) / (n + 1) * C * np.cos(m * (phi - angle))
        return 2 * np.pi / self.wavelength * total

    def aperture(self, row, column):
        k, (pu, pv) = np.hypot(row, column), self.optics["detector_pitch_mrad"]
        pixel = np.divide(np.hypot(row * pu, column * pv), k, out=np.ones_like(k), where=k > 0)
        a = np.clip((self.optics["semiangle_mrad"] - 1e3 * self.wavelength * k) / pixel + 0.5, 0, 1)
        return np.where(k > 0, a, 1.0)

    def __call__(self, row, column):
        return self.aperture(row, column) * np.exp(-1j * self.chi(row, column))

    def terms(self, row, column, q):
        """t1 and t2 of section 3 at every pixel."""
        k2, drift = row**2 + column**2, 2 * np.pi * (q[0] * self.tilt[0] + q[1] * self.tilt[1])
        rate1 = -np.pi * self.wavelength * ((row - q[0]) ** 2 + (column - q[1]) ** 2 - k2) - drift
        rate2 = np.pi * self.wavelength * ((row + q[0]) ** 2 + (column + q[1]) ** 2 - k2) - drift
        w1, w2 = np.sinc(rate1 * self.thickness / 2 / np.pi), np.sinc(rate2 * self.thickness / 2 / np.pi)
        sign = -1 if self.mirrored else 1
        here = self(row, column)
        t1 = w1 * np.conj(here) * self(sign * (row - q[0]), sign * (column - q[1]))
        return t1, w2 * here * np.conj(self(row + q[0], column + q[1]))


def fine_grid(case):
    """Frequencies of the fine grid and which lie inside the radius of section 4."""
    (rows, columns), U, step = case["scan"], case["upsampling"], case["optics"]["scan_step_A"]
    row, column = np.fft.fftfreq(rows * U, step[0] / U), np.fft.fftfreq(columns * U, step[1] / U)
    pitch = max(case["optics"]["detector_pitch_mrad"])
    limit = 2e-3 * (case["optics"]["semiangle_mrad"] + pitch / 2) / wavelength_A(case["optics"]["voltage_V"])
    return row, column, np.hypot(row[:, None], column[None, :]) < limit


def make_counts(case, probe, k, aperture, rng):
    """Counts of a weak random object in the linear model, with Poisson noise: data like a recording's, not the truth of a test."""
    (rows, columns), U = case["scan"], case["upsampling"]
    fine_row, fine_column, inside = fine_grid(case)
    phase = np.fft.fft2(rng.normal(0, case.get("object", 0.1), inside.shape)) / inside.size
    loss = np.fft.fft2(rng.normal(0, 0.3 * case.get("object", 0.1), inside.shape)) / inside.size
    spectrum = np.zeros((rows, columns) + aperture.shape, complex)
    spectrum[0, 0] = aperture**2
    for i, j in np.argwhere(inside):
        if i % rows == 0 and j % columns == 0:
            continue
        t1, t2 = probe.terms(*k, (fine_row[i], fine_column[j]))
        spectrum[i % rows, j % columns] += loss[i, j] * (t1 + t2) + 1j * phase[i, j] * (t1 - t2)
    mean = np.maximum(np.fft.ifft2(spectrum, axes=(0, 1)).real * rows * columns, 0) * case.get("dose", 40.0)
    counts = rng.poisson(mean)
    hot = case.get("hot", [])
    for u, v in hot:
        counts[:, :, u, v] = 60000
    return counts.astype("u4" if case.get("wide") else "u2")


def solve_plane(case, probe, k, g, weights, method, strengths):
    """Images and sums of one method at every strength, all frequencies of the full plane; and every frequency's system."""
    (rows, columns), U = case["scan"], case["upsampling"]
    fine_row, fine_column, inside = fine_grid(case)
    smoothness = case.get("smoothness_inv_A", np.inf)
    systems = {}
    for r in range(rows):
        for c in range(columns):
            if r == 0 and c == 0:
                continue
            at = np.argwhere(inside[r::rows, c::columns]) * [rows, columns] + [r, c]
            terms = [probe.terms(*k, (fine_row[i], fine_column[j])) for i, j in at]
            phase = [1j * (t1 - t2) for t1, t2 in terms]
            M = np.array(phase if method == "phase" else [t1 + t2 for t1, t2 in terms] + phase).reshape(-1, len(weights)).T
            q2 = fine_row[at[:, 0]] ** 2 + fine_column[at[:, 1]] ** 2
            systems[r, c] = dict(aliases=at, M=M, N=M.conj().T @ (weights[:, None] * M), b=M.conj().T @ (weights * g[r, c]),
                                 power=np.sum(weights * abs(g[r, c]) ** 2), prior=(1 + q2 / smoothness**2) ** 2, g=g[r, c])
    diagonals = [(len(s["aliases"]), np.diag(s["N"]).real) for s in systems.values()]
    scale_phase = np.concatenate([d[len(d) - n:] for n, d in diagonals]).mean()
    scale_amplitude = np.concatenate([d[:n] for n, d in diagonals]).mean()
    results = []
    for amplitude, strength in strengths:
        x = np.zeros((2,) + inside.shape, complex)
        residual = influence = 0.0
        for s in systems.values():
            n = len(s["aliases"])
            D = strength * scale_phase * s["prior"]
            if method == "complex":
                D = np.concatenate([amplitude * scale_amplitude * s["prior"], D])
            v = np.linalg.solve(s["N"] + np.diag(D), s["b"])
            residual += np.sum(weights * abs(s["g"] - s["M"] @ v) ** 2)
            influence += np.trace(np.linalg.solve(s["N"] + np.diag(D), s["N"])).real
            x[1, s["aliases"][:, 0], s["aliases"][:, 1]] = v[len(v) - n:]
            if method == "complex":
                x[0, s["aliases"][:, 0], s["aliases"][:, 1]] = v[:n]
        images = (np.fft.ifft2(x) * x[0].size).real
        results.append(dict(log_amplitude=images[0], phase=images[1], residual=residual, influence=influence,
                            strength_amplitude=amplitude, strength_phase=strength))
    return systems, scale_amplitude, scale_phase, results


def right_side_image(case, systems):
    """The real image whose Fourier coefficients are b of the phase method."""
    coefficients = np.zeros(fine_grid(case)[2].shape, complex)
    for s in systems.values():
        coefficients[s["aliases"][:, 0], s["aliases"][:, 1]] = s["b"]
    return (np.fft.ifft2(coefficients) * coefficients.size).real


def single_side_band(case, probe, k, g):
    """Section 6: the wave estimator's phase, the phase estimator's phase and its loss."""
    (rows, columns) = case["scan"]
    fine_row, fine_column, inside = fine_grid(case)
    value = np.zeros(inside.shape + (g.shape[2],), complex)
    for i, j in np.argwhere(inside):
        t1, t2 = probe.terms(*k, (fine_row[i], fine_column[j]))
        gamma, size = t1 - t2, abs(t1 - t2)
        value[i, j] = np.where(size > 1e-6, g[i % rows, j % columns] * np.conj(gamma) / np.maximum(size, 1e-6), 0)
    value[0, 0] = g[0, 0].mean()
    wave = np.angle(np.fft.ifft2(value.mean(-1)))
    phases = np.angle(np.fft.ifft2(value, axes=(0, 1)))
    return wave, phases.mean(-1), phases.var(-1).mean()


def write(case, path):
    rng = np.random.default_rng(case["seed"])
    optics, shape = case["optics"], case["detector"]
    probe = Probe(optics, case.get("mirrored", False))
    k_plane = probe.k(shape)
    aperture = probe.aperture(*k_plane)
    counts = make_counts(case, probe, k_plane, aperture, rng)
    bad = np.zeros(shape, "u1")
    for u, v in case.get("hot", []):
        bad[u, v] = 1
    active = (aperture > 0) & (bad == 0)
    mean = counts.mean((0, 1))
    dose = np.median(mean[(aperture == 1) & (bad == 0)])
    k = [plane[active] for plane in k_plane]
    g = np.fft.fft2(counts[:, :, active], axes=(0, 1)) / (counts.shape[0] * counts.shape[1] * dose)
    weights = np.ones(active.sum()) if case.get("weights", "uniform") == "uniform" else 1 / np.maximum(mean[active] / dose, 0.05)
    with h5py.File(path, "w") as file:
        file.attrs.update(optics_json=json.dumps(optics), upsampling=case["upsampling"], weights=case.get("weights", "uniform"),
                          smoothness_inv_A=case.get("smoothness_inv_A", np.inf), mirrored_probe=case.get("mirrored", False),
                          purpose=case["purpose"])
        small = dict(compression="gzip", shuffle=True)
        file.create_dataset("counts", data=counts, **small)
        file.create_dataset("bad", data=bad, **small)
        inside = fine_grid(case)[2]
        rows, columns = case["scan"]
        U = case["upsampling"]
        expected = file.create_group("expected")
        expected["alias_count"] = inside.reshape(U, rows, U, columns).sum((0, 2))
        expected.create_dataset("aperture", data=aperture, **small)
        expected.create_dataset("chi", data=probe.chi(*k_plane), **small)
        expected.create_dataset("k_inv_A", data=np.array(k_plane), **small)
        expected["dose"] = dose
        symmetric = not case.get("mirrored", False)
        if symmetric:
            wave, phase, loss = single_side_band(case, probe, k, g)
            expected["ssb/wave"], expected["ssb/phase"] = wave, phase
            expected["ssb/phase"].attrs["loss"] = loss
        for method in ("phase", "complex"):
            systems, scale_amplitude, scale_phase, results = solve_plane(case, probe, k, g, weights, method, case["strengths"])
            group = expected.create_group(method)
            if symmetric:
                group.attrs.update(scale_amplitude=scale_amplitude, scale_phase=scale_phase)
            if symmetric and method == "phase":
                group["right_side_image"] = right_side_image(case, systems)
            for i, result in enumerate(results if symmetric else []):
                one = group.create_group(f"strength_{i}")
                one["phase"] = result["phase"]
                if method == "complex":
                    one["log_amplitude"] = result["log_amplitude"]
                one.attrs.update({name: result[name] for name in ("residual", "influence", "strength_amplitude", "strength_phase")})
            for r, c in case["show"]:
                one = group.create_group(f"system_{r}_{c}")
                for name in ("aliases", "M", "N", "b", "power", "prior"):
                    one[name] = systems[r, c][name]
                one["weights"] = weights


def optics(voltage_V, semiangle_mrad, step_A, pitch_mrad, center_px, rotation_deg, aberrations, **more):
    return dict(voltage_V=voltage_V, semiangle_mrad=semiangle_mrad, scan_step_A=step_A, detector_pitch_mrad=pitch_mrad,
                detector_center_px=center_px, rotation_deg=rotation_deg, aberrations=aberrations, **more)


ALL_TERMS = {"C10_A": -60.0, "C12_A": 25.0, "phi12_rad": 0.7, "C21_A": 400.0, "phi21_rad": -0.9, "C23_A": 300.0, "phi23_rad": 0.3,
             "C30_A": 9000.0, "C32_A": 5000.0, "phi32_rad": 1.1, "C34_A": 4000.0, "phi34_rad": -0.2, "C41_A": 8e4, "phi41_rad": 2.0,
             "C43_A": 6e4, "phi43_rad": -1.0, "C45_A": 5e4, "phi45_rad": 0.5, "C50_A": 1e6, "C52_A": 9e5, "phi52_rad": 0.4,
             "C54_A": 8e5, "phi54_rad": -0.6, "C56_A": 7e5, "phi56_rad": 0.1}
ON_GRID_A = wavelength_A(300e3) / (8 * 4e-3)  # 8 such steps are one detector pixel's spatial frequency
STRENGTHS = [(0.02, 0.02), (0.3, 0.1)]

CASES = {
    "all_terms": dict(
        purpose="all 14 aberration terms, rectangular pixels, prime and rectangular scan, thickness and tilt, poisson weights",
        optics=optics(300e3, 24.0, [0.41, 0.36], [4.1, 3.7], [6.2, 5.6], 64.0, ALL_TERMS, thickness_A=90.0, tilt_mrad=[4.0, -3.0]),
        scan=(7, 11), detector=(13, 12), upsampling=3, weights="poisson", smoothness_inv_A=1.1, show=[(0, 1), (3, 2)]),
    "transposed": dict(
        purpose="transposed and flipped detector, rectangular pixels, even scan with Nyquist lines, auto upsampling 2",
        optics=optics(200e3, 21.0, [0.55, 0.5], [3.9, 3.4], [6.3, 6.8], -123.4, {"C10_A": 45.0, "C21_A": 500.0, "phi21_rad": 0.8},
                      detector_transpose=True, detector_flip=[False, True]),
        scan=(8, 6), detector=(14, 13), upsampling=2, show=[(4, 3), (1, 2)]),
    "flipped": dict(
        purpose="both flips, U even with an odd scan: fine Nyquist lines inside the radius, and U smaller than auto",
        optics=optics(300e3, 30.0, [0.6, 0.55], [5.2, 5.2], [6.0, 6.4], 10.0, {"C10_A": -90.0}, detector_flip=[True, True]),
        scan=(9, 7), detector=(13, 13), upsampling=2, weights="poisson", show=[(0, 3), (4, 0)]),
    "one_row": dict(
        purpose="a scan of one row, even and with Nyquist, a bad pixel inside the disc",
        optics=optics(80e3, 22.0, [0.5, 0.45], [3.6, 3.6], [6.0, 6.0], 0.0, {"C10_A": -70.0, "C30_A": 2e4}),
        scan=(1, 16), detector=(13, 13), upsampling=2, hot=[(6, 7), (3, 5)], show=[(0, 3), (0, 8)]),
    "plain": dict(
        purpose="upsampling 1: the only alias is the frequency itself, many frequencies lie outside the radius; even scan",
        optics=optics(300e3, 20.0, [0.2, 0.25], [3.3, 3.3], [7.0, 7.0], 90.0, {"C10_A": 100.0, "C23_A": 800.0, "phi23_rad": 0.2}),
        scan=(10, 12), detector=(15, 15), upsampling=1, smoothness_inv_A=2.0, show=[(0, 1), (2, 2)]),
    "mirrored": dict(
        purpose="the published form with P(q-k) instead of P(k-q), coma and three-fold astigmatism",
        optics=optics(300e3, 25.0, [0.5, 0.45], [4.3, 4.3], [6.1, 5.8], 33.0, ALL_TERMS),
        scan=(6, 7), detector=(12, 13), upsampling=2, mirrored=True, show=[(1, 2)]),
    "aliases_21": dict(
        purpose="a coarse scan: U = 5 and up to 21 aliases, strong defocus",
        optics=optics(300e3, 1.03, [24.0, 24.0], [0.2, 0.2], [6.1, 6.4], 119.96, {"C10_A": -128170.0}),
        scan=(5, 7), detector=(13, 13), upsampling=5, show=[(1, 2)]),
    "aliases_37": dict(
        purpose="the geometry of a real virus series: U = 7 and up to 37 aliases",
        optics=optics(300e3, 1.03, [31.25, 31.25], [0.2, 0.2], [6.1, 5.4], 119.96, {"C10_A": -128170.0}),
        scan=(4, 5), detector=(12, 12), upsampling=7, weights="poisson", strengths=[(0.1, 0.1)], show=[(1, 2)]),
    "aliases_64": dict(
        purpose="U = 8 with every fine frequency inside: 64 aliases everywhere, the most there may be",
        optics=optics(300e3, 1.03, [55.0, 55.0], [0.16, 0.2], [7.1, 5.4], 20.0, {"C10_A": 90000.0, "C12_A": 8000.0, "phi12_rad": 0.5}),
        scan=(3, 4), detector=(15, 12), upsampling=8, strengths=[(0.1, 0.05)], show=[(1, 2)]),
    "strong_aberrations": dict(
        purpose="a hundred turns of phase across the aperture: C30 = 1 mm at 30 mrad",
        optics=optics(300e3, 30.0, [0.35, 0.33], [4.5, 4.5], [7.3, 7.1], 15.0, {"C10_A": 3000.0, "C30_A": 1e7}),
        scan=(6, 5), detector=(15, 15), upsampling=3, show=[(1, 2)]),
    "on_grid": dict(
        purpose="shifted pixels that fall on the optic axis, exactly or nearly: k - q or k + q is 0 or tiny",
        optics=optics(300e3, 20.0, [ON_GRID_A, ON_GRID_A], [4.0, 4.0], [6.0, 6.0], 0.002, {"C10_A": -200.0, "C30_A": 1e4}),
        scan=(8, 6), detector=(13, 13), upsampling=2, show=[(1, 2), (2, 0)]),
    "wide_counts": dict(
        purpose="uint32 counts above 65535, prime sizes",
        optics=optics(300e3, 18.0, [0.6, 0.5], [3.0, 3.0], [6.3, 6.2], -40.0, {"C10_A": 120.0, "C12_A": 60.0, "phi12_rad": 1.0}),
        scan=(5, 7), detector=(13, 13), upsampling=2, wide=True, dose=3e6, object=0.2, show=[(2, 3)]),
}


def main(arguments):
    if arguments == ["--list"]:
        for name, case in CASES.items():
            print(f"{name:20} {case['purpose']}")
        return
    for name in arguments[1:] or CASES:
        case = dict(strengths=STRENGTHS, seed=list(CASES).index(name) + 1, **{k: v for k, v in CASES[name].items() if k != "strengths"})
        case["strengths"] = CASES[name].get("strengths", STRENGTHS)
        write(case, f"{arguments[0]}/{name}.h5")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
