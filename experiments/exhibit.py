"""What a reproduction comes to: exhibits (a paper's tables and figures with our numbers), and claims held against them."""

import dataclasses
import statistics


def mean(values):
    """Of those that there are; None of none."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


@dataclasses.dataclass
class Exhibit:
    """A table or a figure of a paper, anew: `rows` by name, a number (None: there is none) for each of `columns`."""

    name: str  # "Figure 6"
    title: str
    unit: str  # of the numbers: "speedup", "%"
    columns: list[str]
    rows: dict[str, list[float | None]]
    paper: dict[str, float] = dataclasses.field(default_factory=dict)  # by column: the mean that the paper tells
    digits: int = 2
    has_mean: bool = True  # whether the rows have a mean that says something
    notes: list[str] = dataclasses.field(default_factory=list)

    def values(self, column):
        index = self.columns.index(column)
        return [row[index] for row in self.rows.values() if row[index] is not None]

    def mean_of(self, column):
        return mean(self.values(column))


@dataclasses.dataclass
class Claim:
    """A sentence of the paper with a number in it. `holds`: by the comparison that `text` names; None: cannot be said."""

    text: str
    paper: str
    ours: str
    holds: bool | None
    why: str = ""  # it does not hold, where it does not


def at_least(text, paper, ours, why="", digits=2):
    """`ours` is None where it was not measured."""
    return Claim(text, number(paper, digits), number(ours, digits), None if ours is None else ours >= paper, why)


def at_most(text, paper, ours, why="", digits=2):
    return Claim(text, number(paper, digits), number(ours, digits), None if ours is None else ours <= paper, why)


@dataclasses.dataclass
class Reproduction:
    paper: str  # its short name, which its files have
    title: str
    way: str  # "simulated", "on software devices"
    claims: list[Claim] = dataclasses.field(default_factory=list)
    exhibits: list[Exhibit] = dataclasses.field(default_factory=list)
    settled: list[str] = dataclasses.field(default_factory=list)  # what the paper leaves open and was chosen
    command: str = ""  # that made it
    not_run: list[str] = dataclasses.field(default_factory=list)  # which parts of it, and why

    def missed(self):
        return [claim for claim in self.claims if claim.holds is False]


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


VERDICTS = {True: "yes", False: "**no**", None: "-"}


def rows_of(exhibit):
    """The exhibit's rows as texts, with the means and the paper's own."""
    rows = [[name, *(number(value, exhibit.digits) for value in values)] for name, values in exhibit.rows.items()]
    if exhibit.has_mean and len(exhibit.rows) > 1:
        rows.append(["mean", *(number(exhibit.mean_of(column), exhibit.digits) for column in exhibit.columns)])
    if exhibit.paper:
        rows.append(["the paper's mean", *(number(exhibit.paper.get(column), exhibit.digits) for column in exhibit.columns)])
    return rows


def markdown(reproduction):
    parts = [f"# {reproduction.title}, {reproduction.way}", f"Made by `{reproduction.command}`.", "## What holds"]
    parts.append(_table(["claim", "paper", "ours", "holds"],
                        [[claim.text, claim.paper, claim.ours, VERDICTS[claim.holds]] for claim in reproduction.claims]))
    parts += [f"- {claim.text}: {claim.why}" for claim in reproduction.missed() if claim.why]
    if reproduction.not_run:
        parts += ["## What did not run", "\n".join(f"- {each}" for each in reproduction.not_run)]
    for exhibit in reproduction.exhibits:
        parts.append(f"## {exhibit.name}: {exhibit.title}")
        parts.append(_table([exhibit.unit, *exhibit.columns], rows_of(exhibit)))
        parts += exhibit.notes
    parts.append("## What the paper leaves open, and how it was settled")
    parts.append("\n".join(f"- {each}" for each in reproduction.settled))
    return "\n\n".join(parts) + "\n"
