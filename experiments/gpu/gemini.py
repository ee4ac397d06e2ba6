"""Gemini's shares on a GPU: what jobs have of it that request fractions of its time, under the token policy."""

import functools

import gemini
from exhibit import Claim, Exhibit, Reproduction, at_most, number
from gpu.cells import Cell, Plan

# Seconds: a look each, windows of so many looks, two of them that begin one look apart, behind the first looks.
LOOK, LENGTH, SKIPPED = 1, 4, 1
KERNEL = 0.0006  # seconds
ALWAYS, LAZY = (20, 0.0), (16, 0.09)  # launches of a burst, and the pause before it
LAUNCHED_APART = "a job whose bursts are waited for leaves the device idle between two, and that counts as its holder's"

# By name: (request, limit, what it does) of each job.
GROUPS = {
    **{f"two jobs {10 * each} + {100 - 10 * each}": [(each / 10, 1.0, ALWAYS), (1 - each / 10, 1.0, ALWAYS)] for each in (1, 3, 5)},
    "idle share": [(0.5, 1.0, LAZY), (0.3, 1.0, ALWAYS)],
    "limits": [(0.2, 0.5, ALWAYS), (0.2, 0.3, ALWAYS)],
    "three jobs 20 + 30 + 50": [(0.2, 1.0, ALWAYS), (0.3, 1.0, ALWAYS), (0.5, 1.0, ALWAYS)],
}


def settled(machine):
    return [
        f"A job that always has work: `workloads/episodes`, bursts of {ALWAYS[0]} launches of about {1000 * KERNEL:g} ms that fill the device, one after "
        f"the other. One that is mostly idle: {LAZY[0]} launches, {1000 * LAZY[1]:g} ms apart.",
        f"Shares are looked at in two windows of {machine.seconds(LENGTH * LOOK):g} s that begin a look apart, {SKIPPED} s behind the first work of all: the "
        "part of a window in which a job's kernels were on the device, as `heddle top` tells it. The worst window counts. The policy holds requests "
        "over its last 10 s, or those since heddled's start: each group has a heddled of its own.",
        "Requests of jobs that always have work are held against the time in which the device worked: between a burst's end and the next one's first "
        "kernel nobody's kernels are on it. Limits are held against the whole window.",
        f"A limit may be exceeded by one quota in 10 s, {number(gemini.QUOTA / gemini.WINDOW / 10, 1)} points, so by more in a shorter window.",
    ]


def measure(machine, jobs, node):
    """What each job had in each window, in per cent."""
    commands = [(["--share", f"{request:g}", "--limit", f"{limit:g}"], machine.episodes(node, KERNEL, *load)) for request, limit, load in jobs]
    length = round(machine.seconds(LENGTH))
    with node.running(commands) as names:
        def works(name):
            return node.jobs().get(name, {}).get("usage", {}).get("busy_ns", 0) > 0
        node.wait(lambda: all(map(works, names)), 30, "not all jobs were at work")
        return gemini.shares_of(node.looks(SKIPPED + length + 2, LOOK), names, SKIPPED, length)


def told(had):
    return "; ".join(f"job {at + 1}: {min(row):.1f} to {max(row):.1f} %" for at, row in enumerate(had))


def parts_of(had):
    """Of what the device worked, each job's part in each window, in per cent."""
    worked = [sum(row) for row in zip(*had)]
    return [[100 * each / total if total else 0 for each, total in zip(row, worked)] for row in had]


def requests_met(results, kind):
    """Of the groups of that kind that ran: an exhibit, and how far the worst was off."""
    rows, worst = {}, None
    for name, jobs in GROUPS.items():
        if not name.startswith(kind) or name not in results:
            continue
        had = results[name]
        for at, ((request, _, _), row, parts) in enumerate(zip(jobs, had, parts_of(had))):
            rows[f"{100 * request:.0f} of {name.removeprefix(kind).strip()}, job {at + 1}"] = [100 * request, min(parts), max(parts), min(row), max(row)]
            worst = max(worst or 0, *(abs(part - 100 * request) for part in parts))
    return Exhibit(kind.capitalize(), "requests are met in every window", "%", ["asked", "least of the device's work", "most of it",
                                                                              "least of a window", "most of one"], rows, has_mean=False), worst


def limits_held(results):
    rows, over = {}, None
    for at, ((request, limit, _), row) in enumerate(zip(GROUPS["limits"], results.get("limits", []))):
        rows[f"job {at + 1}"] = [100 * request, 100 * limit, min(row), max(row)]
        over = max(over or 0, max(row) - 100 * limit)
    return Exhibit("Limits", "no job exceeds its limit, though nobody else wants the device", "% of a window",
                   ["requested", "limit", "least", "most"], rows, has_mean=False), over


def idle_given(results):
    rows = {}
    for name, row in zip(("mostly idle, requests 50", "always busy, requests 30"), results.get("idle share", [])):
        rows[name] = [min(row), max(row)]
    given = rows["always busy, requests 30"][0] if rows else None
    return Exhibit("Idle shares", "what one does not use the other has", "% of a window", ["least", "most"], rows, has_mean=False), given


def report(machine, results):
    two, off_two = requests_met(results, "two jobs")
    three, off_three = requests_met(results, "three jobs")
    limited, over = limits_held(results)
    idle, given = idle_given(results)
    worked = [sum(row) for name, had in results.items() if "jobs" in name for row in zip(*had)]
    quota = gemini.QUOTA / machine.seconds(LENGTH * LOOK) / 10
    claims = [
        at_most("two jobs: off by at most, points of the device's work (our goal)", 1, off_two, LAUNCHED_APART),
        at_most("three jobs: off by at most, points of the device's work (our goal)", 1, off_three, LAUNCHED_APART),
        at_most("limits are exceeded by at most, points (our goal: one quota in a window)", quota, over, digits=1),
        Claim("a share that is not used goes to who has work: it has at least, %", "more than its 30", number(given, 1),
              None if given is None else given > 31),
        Claim("the device works, while somebody always has work, at least, % of a window", "-", number(min(worked, default=None), 1), None),
    ]
    return Reproduction("gemini-gpu", "Gemini: shares of a device by token", f"on {machine.name}", claims, [two, three, limited, idle],
                        settled(machine))


def plan(machine, seed):
    del seed  # nothing here is random
    node = {"dispatch": "token", "count": 1}
    cells = [Cell(name, node, functools.partial(measure, machine, jobs), told, is_fresh=True) for name, jobs in GROUPS.items()]
    return Plan(cells, functools.partial(report, machine))
