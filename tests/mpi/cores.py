#!/usr/bin/env python3
"""Where ranks run: spread where mpirun's own binding leaves cores idle, as asked where somebody asked.

usage: cores.py PROGRAM INJECT_LIBRARY SERIES_FOLDER. Needs OpenMPI's mpirun, h5py and at least two CPUs.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py

SPREAD = "the launcher's own binding left"
WARNING = "the binding that was asked for"


class Failure(Exception):
    pass


def allowed(pid):
    """CPUs that a process may run on; empty when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return set()
    for line in status.splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return {cpu for part in line.split()[1].split(",") for cpu in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}
    return set()


def ranks_of(program, mark):
    """Process ids of the ranks of this run: they have mark in their environment, and no parent that runs the program."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == program and mark in (entry / "environ").read_bytes():
                found[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    return [pid for pid, parent in found.items() if parent not in found]


class Runs:
    def __init__(self, program, inject, series, folder):
        self.program, self.inject, self.folder, self.n = os.path.realpath(program), inject, folder, 0
        for name in ("simulate.json", "reconstruct.json"):
            shutil.copy(Path(series) / name, folder)
        subprocess.run([self.program, "run", folder / "simulate.json", "--quiet"], check=True)
        self.environment = {k: v for k, v in os.environ.items() if not re.match("OMP_|OMPI_MCA_|SLURM_", k)}
        self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_WAIT_POLICY="passive")

    def run(self, options, n_ranks=1, prefix=(), wrapper=(), **variables):
        """The log, CPUs of each rank while it works, and what the output records. Slower and slower until all ranks were seen at work."""
        for write_us in (4000, 20000, 100000):
            text, cpus, note = self.run_once(options, prefix, wrapper, {**variables, "PS_INJECT_WRITE_US": str(write_us)})
            if len(cpus) == n_ranks:
                return text, cpus, note
        raise Failure(f"{options}: {len(cpus)} of {n_ranks} ranks were seen at work:\n{text}")

    def run_once(self, options, prefix, wrapper, variables):
        self.n += 1
        output = self.folder / f"out_{self.n}.h5"
        mark = f"PS_TEST_RUN={os.getpid()}.{self.n}"
        slow = {"LD_PRELOAD": self.inject, "PS_INJECT_PATH": output.name}
        settings = [f"{k}={v}" for k, v in {**slow, **variables}.items()]
        command = [*prefix, "mpirun", *options, "env", mark, *settings, *wrapper, self.program, "run", self.folder / "reconstruct.json", "--set",
                   f"output.file={output}"]
        log = self.folder / "log.txt"
        with open(log, "w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=self.environment)
            cpus = []
            while process.poll() is None:
                if "frames of" in log.read_text():  # the plan is said after ranks are placed
                    seen = [found for found in map(allowed, ranks_of(self.program, mark.encode())) if found]
                    cpus = max(cpus, seen, key=len)
                time.sleep(0.05)
        text = log.read_text()
        if process.returncode != 0:
            raise Failure(f"{options}: exit status {process.returncode}:\n{text}")
        with h5py.File(output, "r") as file:
            note = file["entry/process_1/cores"][()].decode()
        output.unlink()
        return text, cpus, note


def expect(condition, what, found):
    if not condition:
        raise Failure(f"{what}: found {found}")


def check(runs, everywhere):
    n = len(everywhere)
    everything = runs.run(["-n", "1"])
    expect(SPREAD in everything[0], "one rank by mpirun: is spread", everything[0])
    expect(everything[1] == [everywhere], "one rank by mpirun: runs on all CPUs", everything[1])
    expect(f"spread by the program; {n} threads" in everything[2], "one rank by mpirun: the output says so", everything[2])

    text, cpus, note = runs.run(["-n", "2"], n_ranks=2)
    expect(WARNING not in text, "two ranks", (text, cpus))
    expect(all(len(c) >= n // 2 for c in cpus) and not cpus[0] & cpus[1] or cpus[0] == cpus[1] == everywhere, "two ranks: each has its half", cpus)
    expect(note.count("\n") == 1 and note.count(f"; {n // 2} threads") == 2, "two ranks: threads", note)
    expect((SPREAD in text) == (n > 2), "two ranks: said only where something was done", text)

    text, cpus, note = runs.run(["--bind-to", "core", "-n", "1"])
    expect(WARNING in text and "hwloc_base_binding_policy=core" in text and SPREAD not in text, "--bind-to core: obeyed with a warning", text)
    expect(len(cpus[0]) < n and "as it was asked for" in note, "--bind-to core: obeyed", (cpus, note))

    text, cpus, note = runs.run(["--bind-to", "none", "-n", "2"], n_ranks=2)
    expect(WARNING not in text and SPREAD not in text and cpus == [everywhere, everywhere], "--bind-to none", (text, cpus))
    expect(note.count(f"; {n // 2} threads") == 2, "--bind-to none: no more threads than CPUs", note)

    first = str(min(everywhere))
    text, cpus, note = runs.run(["-n", "1"], wrapper=["taskset", "-c", first])
    expect(WARNING in text and "taskset" in text and cpus == [{int(first)}], "a rank by taskset: obeyed with a warning", (text, cpus))

    text, cpus, note = runs.run(["-n", "1"], prefix=["taskset", "-c", first])
    expect(WARNING not in text and SPREAD not in text and cpus == [{int(first)}], "mpirun itself by taskset: that is what there is", (text, cpus))

    text, cpus, note = runs.run(["-n", "1"], OMP_PROC_BIND="close")
    expect(WARNING in text and "OMP_PROC_BIND=close" in text, "threads bound by OMP_PROC_BIND: obeyed with a warning", text)

    text, cpus, note = runs.run(["-n", "1"], OMP_NUM_THREADS="1")
    expect(cpus == [everywhere] and "; 1 threads" in note, "OMP_NUM_THREADS is obeyed", (cpus, note))

    script = runs.folder / "wrapper.sh"
    script.write_text('"$@"\nexit $?\n')
    text, cpus, note = runs.run(["-n", "1"], wrapper=["bash", str(script)])
    expect(SPREAD in text and cpus == [everywhere], "a script between mpirun and the rank", (text, cpus))

    text, cpus, note = runs.run(["--oversubscribe", "-n", str(n + 1)], n_ranks=n + 1)
    expect(WARNING not in text and note.count("; 1 threads") == n + 1, "more ranks than CPUs", (text, note))


def main():
    everywhere = os.sched_getaffinity(0)
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if len(everywhere) < 2 or "Open MPI" not in version:
        print("needs OpenMPI and at least two CPUs")
        return 77
    with tempfile.TemporaryDirectory(prefix="ptyseries-cores-") as folder:
        try:
            check(Runs(*sys.argv[1:4], Path(folder)), everywhere)
        except Failure as failure:
            print(failure, file=sys.stderr)
            return 1
    print("ranks run where they should")
    return 0


if __name__ == "__main__":
    sys.exit(main())
