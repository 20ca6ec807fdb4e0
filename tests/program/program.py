"""What the tests here share: small recordings of a weak object, the program, its output."""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import h5py
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROWS, COLUMNS, DETECTOR, CENTER, RADIUS = 6, 7, (20, 18), (9.3, 8.6), 5.6
IN_DISC = (8, 9)  # a pixel well inside
OPTICS = {"voltage_V": 200000, "semiangle_mrad": 3.0 * RADIUS, "scan_step_A": [0.5, 0.5], "detector_pitch_mrad": [3.0, 3.0],
          "detector_center_px": list(CENTER), "aberrations": {"C10_A": -60}}
JOB = {"task": "reconstruct", "series": {"files": ["frame_*.npy"], "scan_shape": [ROWS, COLUMNS]}, "optics": OPTICS, "weights": "poisson",
       "methods": {"ssb": {"estimator": "phase"}, "phase": {"strength": "auto"}, "complex": {"strength": [0.1, 0.3]}},
       "output": {"file": "out.h5"}, "compute": {"backend": "cpu"}}
RESULTS = ["ssb/phase", "ssb/loss", "phase/phase", "phase/residual", "phase/gcv", "phase/chosen_strength", "complex/phase",
           "complex/log_amplitude", "complex/residual", "mf/image", "frames/dose", "frames/data_norm"]


def recording(seed, dtype="uint16"):
    """Poisson counts [position, row, column] of a disc that the object modulates."""
    generator = numpy.random.default_rng(seed)
    row, column = numpy.indices(DETECTOR)
    a, b = row - CENTER[0], column - CENTER[1]
    disc = numpy.clip(RADIUS - numpy.hypot(a, b) + 0.5, 0, 1)
    scan_row, scan_column = numpy.indices((ROWS, COLUMNS)).reshape(2, -1, 1, 1)
    wave = numpy.cos(2 * numpy.pi * (scan_row / ROWS * 2 + scan_column / COLUMNS + 0.1 * seed))
    mean = 200 * disc * (1 + 0.1 * wave * a / RADIUS) + 0.5
    return generator.poisson(mean).astype(dtype)


class Folder:
    """A temporary folder with a program to run in it."""

    def __init__(self, program):
        self.program, self.path = Path(program).resolve(), Path(tempfile.mkdtemp(prefix="ptyseries-program-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def save(self, name, counts):
        numpy.save(self.path / name, counts)

    def save_job(self, job=JOB):
        (self.path / "job.json").write_text(json.dumps(job))

    def call(self, command, *settings, status=0, ranks=None, extra=()):
        """Runs `command` on the job; the text it printed."""
        launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
        arguments = [word for setting in settings for word in ("--set", setting)]
        done = subprocess.run([*launcher, self.program, command, "job.json", *arguments, *extra], cwd=self.path, capture_output=True, text=True,
                              timeout=120)
        if done.returncode != status:
            fail(f"{command} {settings}: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def use(self, command, *arguments, status=0):
        """Runs `command` with these arguments; the text it printed."""
        done = subprocess.run([self.program, command, *arguments], cwd=self.path, capture_output=True, text=True, timeout=120)
        if done.returncode != status:
            fail(f"{command} {arguments}: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def run(self, *settings, output="out.h5", **options):
        """Runs the job into a fresh output; its results and its text."""
        (self.path / output).unlink(missing_ok=True)
        text = self.call("run", f"output.file={output}", *settings, **options)
        return Output(self.path / output, text)


class Output:
    def __init__(self, path, text):
        self.text = text
        with h5py.File(path, "r") as file:
            entry = file["entry"]
            self.results = {name: entry[name][()] for name in RESULTS if name in entry}
            self.frames = {name: entry["frames"][name][()] for name in entry["frames"]}
            self.optics = {name: entry["optics_0"][name][()] for name in entry["optics_0"]}
            self.signature = entry["signature"][()]
        for name, values in self.results.items():
            if not numpy.isfinite(values).all():
                fail(f"{name} holds values that are not finite")

    def state(self):
        return self.frames["state"].tolist()

    def error(self, frame):
        return self.frames["error"][frame].decode()


def same(found, expected, frames, what, expected_frames=None):
    """The results of `frames` agree to the last bit, and are not empty."""
    for name in expected.results:
        a, b = found.results[name][frames], expected.results[name][frames if expected_frames is None else expected_frames]
        if a.tobytes() != b.tobytes():
            fail(f"{what}: {name} differs by up to {numpy.abs(a - b).max()}")
        if name.endswith("/phase") and not a.any():
            fail(f"{what}: {name} is empty")


def says(text, *parts):
    for part in parts:
        if part not in text:
            fail(f"'{part}' is not in:\n{text}")


def check(condition, what):
    if not condition:
        fail(what)


def fail(message):
    raise AssertionError(message)


def main(cases):
    """Runs every case in a folder of its own; exit status 1 when any fails."""
    failed = 0
    for case in cases:
        try:
            with Folder(sys.argv[1]) as folder:
                case(folder)
            print(f"passed: {case.__name__}")
        except AssertionError as error:
            failed += 1
            print(f"FAILED: {case.__name__}: {error}")
    return 1 if failed else 0
