"""Gemini (papers/gemini.txt): jobs request fractions of a GPU's time and are limited to others. The article tells no
numbers; what it promises is held against windows of ten seconds."""

import os

from exhibit import Claim, Exhibit, Reproduction, number
from simulation import Failed, Scenario, seconds

GPU = {"preset": "V100"}
WINDOW = 10  # seconds
WINDOWS = 6  # that are looked at, behind the first, which begins with nothing known of anybody
QUOTA = 250  # ms: a token's length where nothing is known of bursts, the longest here
BURSTS = 1000000  # more than there is time for: a job that ends and comes again is another one, of which nothing is known

SETTLED = [
    "A job that always has work: bursts of 12 ms of kernels of 0.6 ms, and 10 us of the host in between.",
    f"Shares are looked at in {WINDOWS} windows of {WINDOW} s, one after the other, behind the first: the fraction of a window in which a "
    "job's kernels were on the GPU. The worst window counts.",
    "A limit may be exceeded by one quota in a window, 2.5 points: our goal.",
]


def job(name, request, limit=1.0, host=1e-5, busy=0.012, **keys):
    return {
        "name": name, "memory": "1G", "blocks": 512, "bursts": BURSTS, "share": request, "limit": limit,
        "host": seconds(host), "busy": seconds(busy), "kernel": seconds(busy / 20), **keys,
    }


def windows(simulator, jobs, dispatch="token", count=WINDOWS):
    """For each job: the fractions of each window, in per cent, in which its kernels were on the GPU."""
    had = []
    for end in range(1, count + 2):
        scenario = Scenario([GPU], jobs, {"horizon": f"{end * WINDOW}s"})
        [run] = simulator.run(scenario, [("gmin", dispatch)])
        had.append(run.busy())
    return [[100 * (after[at] - before[at]) / WINDOW for before, after in zip(had, had[1:])] for at in range(len(jobs))]


class Shares:
    """Shares asked for and had: rows of an exhibit, and how far the worst window was off."""

    def __init__(self, simulator, progress):
        self.simulator, self.progress = simulator, progress

    def hold(self, title, asked):
        """Jobs that always have work and request `asked`."""
        self.progress(title)
        had = windows(self.simulator, [job(f"{100 * each:.0f} %", each) for each in asked])
        rows = {f"{100 * each:.0f} of {title}": [100 * each, min(row), max(row)] for each, row in zip(asked, had)}
        off = max(abs(value - 100 * each) for each, row in zip(asked, had) for value in row)
        return rows, off


def exhibit_of_shares(shares, name, title, groups):
    rows, worst = {}, 0
    for group in groups:
        more, off = shares.hold(" + ".join(f"{100 * each:.0f}" for each in group), group)
        rows.update(more)
        worst = max(worst, off)
    return Exhibit(name, title, "% of a window", ["asked", "least", "most"], rows, digits=2, has_mean=False), worst


def limits(simulator, progress):
    rows, over = {}, 0
    cases = {"alone": [(0.3, 0.4)], "beside one without a limit": [(0.3, 0.4), (0.3, 1.0)], "two limited": [(0.2, 0.5), (0.2, 0.3)]}
    for title, asked in cases.items():
        progress(f"limits: {title}")
        had = windows(simulator, [job(f"{request}-{limit}-{at}", request, limit) for at, (request, limit) in enumerate(asked)])
        for at, ((request, limit), row) in enumerate(zip(asked, had)):
            rows[f"{title}: job {at + 1}"] = [100 * request, 100 * limit, min(row), max(row)]
            over = max(over, max(row) - 100 * limit)
    return Exhibit("Limits", "no job exceeds its limit, though nobody else wants the GPU", "% of a window",
                   ["requested", "limit", "least", "most"], rows, has_mean=False), over


def idle_shares(simulator, progress):
    """One job requests half and has work for a tenth of the time only; the other requests 0.3."""
    progress("idle shares")
    lazy = job("mostly idle", 0.5, host=0.09, busy=0.01)
    busy = job("always busy", 0.3)
    had = windows(simulator, [lazy, busy])
    alone = windows(simulator, [lazy])
    rows = {"mostly idle, requests 50": [min(had[0]), max(had[0])], "the same alone": [min(alone[0]), max(alone[0])],
            "always busy, requests 30": [min(had[1]), max(had[1])]}
    return Exhibit("Idle shares", "what one does not use the other has", "% of a window", ["least", "most"], rows, has_mean=False)


def without(simulator, progress):
    """The same two requests where nobody lends the GPU."""
    progress("without tokens")
    rows = {}
    for dispatch in ("open", "token", "token:overlap"):
        had = windows(simulator, [job("30", 0.3), job("70", 0.7)], dispatch)
        rows[dispatch] = [value for row in had for value in (min(row), max(row))]
    return Exhibit("Requests of 30 and 70", "under each way of dispatch", "% of a window",
                   ["30: least", "30: most", "70: least", "70: most"], rows, has_mean=False)


def simulate(simulator, seed, progress):
    del seed  # nothing here is random
    shares = Shares(simulator, progress)
    tenths = [each / 10 for each in range(1, 10)]
    two, off_two = exhibit_of_shares(shares, "Two jobs", "requests are met in every window", [(each, round(1 - each, 1)) for each in tenths])
    three, off_three = exhibit_of_shares(shares, "Three jobs", "requests are met in every window",
                                         [(0.1, 0.1, 0.8), (0.1, 0.3, 0.6), (0.2, 0.3, 0.5), (0.3, 0.3, 0.4), (0.1, 0.4, 0.5)])
    limited, over = limits(simulator, progress)
    idle = idle_shares(simulator, progress)
    given = idle.rows["always busy, requests 30"][0]
    claims = [
        Claim("two jobs: off by at most, points", "- (our goal: 1)", number(off_two), off_two <= 1),
        Claim("three jobs: off by at most, points", "- (our goal: 1)", number(off_three), off_three <= 1),
        Claim("limits are exceeded by at most, points", f"- (our goal: one quota, {number(QUOTA / WINDOW / 10, 1)})", number(max(over, 0)),
              over <= QUOTA / WINDOW / 10),
        Claim("a share that is not used goes to who has work: it has at least, %", "more than its 30", number(given, 1), given > 31),
    ]
    return Reproduction("gemini", "Gemini: shares of a GPU by token", "simulated", claims,
                        [two, three, limited, idle, without(simulator, progress)], SETTLED)


# On software devices. Bursts of 20 kernels of about 0.6 ms, as simulated: one block each, little work for the host. A
# burst begins with the latency of a launch, 5 us of a P100: so a kernel is long and the device little slowed.
SLOWDOWN = 50
EPISODES = ["--size", "256", "--steps", "500", "--iterations", "1000000", "--check", "none"]
ALWAYS, LAZY = ["--launches", "20", "--gap", "0"], ["--launches", "16", "--gap", "90"]
LOOK = 2.5  # seconds
LOOKS_OF_WINDOW = round(WINDOW / LOOK)

SETTLED_SOFTWARE = [
    "A job that always has work: `workloads/episodes`, bursts of 20 launches of about 0.6 ms, one after the other without a pause but "
    "that of a launch, 0.25 ms before the first of a burst.",
    f"Shares are looked at in two windows of {WINDOW} s that begin {LOOK} s apart, behind the first {WINDOW} s: the part of a window in "
    "which a job's kernels were on the device, as `heddle top` tells it. The worst window counts.",
    "Requests of jobs that always have work are held against the time in which the device worked: before a burst's first "
    "kernel, and where the host is late, nobody's kernels are on it. Limits are held against the whole window.",
    "A limit may be exceeded by one quota in a window, 2.5 points: our goal.",
]
LATE = "time in which the device waits for its host counts as its holder's, and is not the same for all where the host is busy"


def shares_of(looks, names, skipped=LOOKS_OF_WINDOW, length=LOOKS_OF_WINDOW):
    """For each job: the fraction of each window of `length` looks behind the first ones, in per cent, in which its kernels were on the device."""
    if any(name not in busy for _, busy in looks[skipped:] for name in names):
        raise Failed(f"of the jobs {', '.join(names)} some were not at work after look {skipped}, or have ended")
    windows_of = list(zip(looks[skipped:], looks[skipped + length:]))
    return [[100 * (after[name] - before[name]) / (end - begin) for (begin, before), (end, after) in windows_of] for name in names]


class Device:
    """One software device that is lent by token, anew for each group of jobs."""

    def __init__(self, node_of, workloads, progress):
        self.node_of, self.program, self.progress = node_of, os.path.join(workloads, "episodes"), progress

    def had(self, title, jobs):
        """What jobs of (request, limit, what they do) had in each window, in per cent."""
        self.progress(title)
        commands = [(["--share", str(request), "--limit", str(limit)], [self.program, *EPISODES, *load]) for request, limit, load in jobs]
        with self.node_of("P100", 1, dispatch="token", slowdown=SLOWDOWN) as node, node.running(commands) as names:
            return shares_of(node.looks(2 * LOOKS_OF_WINDOW + 2, LOOK), names)


def requests_on(device, name, groups):
    """How requests are met, how far the worst was off, and the least that the device worked."""
    rows, worst, least = {}, 0, 100
    for group in groups:
        title = " + ".join(f"{100 * each:.0f}" for each in group)
        had = device.had(title, [(each, 1.0, ALWAYS) for each in group])
        worked = [sum(row) for row in zip(*had)]
        least = min(least, *worked)
        for at, (asked, row) in enumerate(zip(group, had)):
            parts = [100 * each / total if total else 0 for each, total in zip(row, worked)]
            rows[f"{100 * asked:.0f} of {title}" + (f", job {at + 1}" if group.count(asked) > 1 else "")] = [
                100 * asked, min(parts), max(parts), min(row), max(row)]
            worst = max(worst, *(abs(part - 100 * asked) for part in parts))
    return Exhibit(name, "requests are met in every window", "%", ["asked", "least of the device's work", "most of it", "least of a window",
                                                                    "most of one"], rows, has_mean=False), worst, least


def limits_on(device):
    rows, over = {}, 0
    for title, asked in {"alone": [(0.3, 0.4)], "two limited": [(0.2, 0.5), (0.2, 0.3)]}.items():
        had = device.had(f"limits: {title}", [(request, limit, ALWAYS) for request, limit in asked])
        for at, ((request, limit), row) in enumerate(zip(asked, had)):
            rows[f"{title}: job {at + 1}"] = [100 * request, 100 * limit, min(row), max(row)]
            over = max(over, max(row) - 100 * limit)
    return Exhibit("Limits", "no job exceeds its limit, though nobody else wants the device", "% of a window",
                   ["requested", "limit", "least", "most"], rows, has_mean=False), over


def idle_shares_on(device):
    lazy, busy = device.had("idle shares", [(0.5, 1.0, LAZY), (0.3, 1.0, ALWAYS)])
    rows = {"mostly idle, requests 50": [min(lazy), max(lazy)], "always busy, requests 30": [min(busy), max(busy)]}
    return Exhibit("Idle shares", "what one does not use the other has", "% of a window", ["least", "most"], rows, has_mean=False)


def on_software(node_of, workloads, seed, progress):
    """The same with programs that run, in a few cases. `node_of(preset, count, ...)` is a Node of software devices."""
    del seed  # nothing here is random
    load = [os.getloadavg()[0]]
    device = Device(node_of, workloads, progress)
    two, off_two, worked_two = requests_on(device, "Two jobs", [(each / 10, round(1 - each / 10, 1)) for each in range(1, 6)])
    three, off_three, worked_three = requests_on(device, "Three jobs", [(0.1, 0.3, 0.6), (0.2, 0.3, 0.5)])
    limited, over = limits_on(device)
    idle = idle_shares_on(device)
    load.append(os.getloadavg()[0])
    given = idle.rows["always busy, requests 30"][0]
    two.notes.append(f"The host has {os.cpu_count()} processors and had a load of {load[0]:.1f} before, {load[1]:.1f} at the end. "
                     "A load far above that of these programs (1 to 2) makes the device idle while its host is late.")
    claims = [
        Claim("two jobs: off by at most, points of the device's work", "- (our goal: 1)", number(off_two), off_two <= 1, LATE),
        Claim("three jobs: off by at most, points of the device's work", "- (our goal: 1)", number(off_three), off_three <= 1, LATE),
        Claim("limits are exceeded by at most, points", f"- (our goal: one quota, {number(QUOTA / WINDOW / 10, 1)})", number(max(over, 0)),
              over <= QUOTA / WINDOW / 10),
        Claim("a share that is not used goes to who has work: it has at least, %", "more than its 30", number(given, 1), given > 31),
        Claim("the device works, while somebody always has work, at least, % of a window", "-",
              number(min(worked_two, worked_three), 1), None),
    ]
    return Reproduction("gemini-software", "Gemini: shares of a device by token", "on software devices", claims,
                        [two, three, limited, idle], SETTLED_SOFTWARE)
