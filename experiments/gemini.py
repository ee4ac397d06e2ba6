"""Gemini (papers/gemini.txt): jobs request fractions of a GPU's time and are limited to others. The article tells no
numbers; what it promises is held against windows of ten seconds."""

from exhibit import Claim, Exhibit, Reproduction, number
from simulation import Scenario, seconds

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
