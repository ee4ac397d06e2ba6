"""A reproduction as one HTML page that needs nothing else: its claims, and each exhibit as bars and as a table."""

import html
import os

from exhibit import VERDICTS, markdown, number, rows_of

COLOURS = ["#3b6fb6", "#d17a22", "#4f9a58", "#b04a5a", "#7a5ba8", "#5b8f99", "#98823a"]
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76em; margin: 2em auto; padding: 0 1em; color: #222; background: #fff; }
table { border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto; }
td, th { padding: .2em .8em; text-align: right; border-bottom: 1px solid #8884; }
td:first-child, th:first-child { text-align: left; }
.claims td, .claims th { text-align: left; } .no { color: #b03030; font-weight: 600; } .yes { color: #2c7a3f; }
svg { width: 100%; height: auto; } svg text { fill: currentColor; font: 11px system-ui, sans-serif; }
code { background: #8882; padding: .1em .3em; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181a1c; } .no { color: #f08080; } .yes { color: #7fce90; } }
"""
WIDTH, HEIGHT, LEFT, TOP = 1100, 300, 46, 26
LETTER = 6.2  # the width of one in labels, on average


def text(value):
    return html.escape(str(value))


def _step(most):
    """The distance of two lines of the scale: 1, 2 or 5 times a power of ten, at most eight lines."""
    step = 1e-6
    while True:
        for factor in (1, 2, 5):
            if most <= 8 * factor * step:
                return factor * step
        step *= 10


def _scale(most, unit):
    step, lines, at = _step(most), [], 0.0
    while at <= most + 1e-12:
        y = TOP + HEIGHT * (1 - at / most)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" opacity=".15"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{at:g}</text>')
        at = round(at + step, 12)
    return "".join(lines) + f'<text x="{LEFT}" y="{TOP - 12}">{text(unit)}</text>'


def _legend(columns):
    parts, x = [], 150
    for index, column in enumerate(columns):
        parts.append(f'<rect x="{x}" y="{TOP - 21}" width="10" height="10" fill="{COLOURS[index % len(COLOURS)]}"/>')
        parts.append(f'<text x="{x + 14}" y="{TOP - 12}">{text(column)}</text>')
        x += 34 + 7 * len(column)
    return "".join(parts)


def _label(name, x, slanted):
    """Of a group of bars; where the groups are narrower than their names, these lean."""
    y = TOP + HEIGHT + 16
    turned = f' transform="rotate(-30 {x:.1f} {y})"' if slanted else ""
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{"end" if slanted else "middle"}"{turned}>{text(name)}</text>'


def bars(exhibit):
    """The exhibit's numbers as SVG: a group of bars a row, and the paper's means as dashed lines of the same colours."""
    values = [value for row in exhibit.rows.values() for value in row if value is not None]
    most = 1.05 * max([*values, *exhibit.paper.values(), 1e-6])
    group = (WIDTH - LEFT) / max(1, len(exhibit.rows))
    width = 0.8 * group / len(exhibit.columns)
    longest = LETTER * max((len(name) for name in exhibit.rows), default=0)
    slanted = longest > group
    bottom = 16 + (0.5 * longest if slanted else 0)
    parts = [_scale(most, exhibit.unit), _legend(exhibit.columns)]
    for place, (name, row) in enumerate(exhibit.rows.items()):
        left = LEFT + place * group + 0.1 * group
        for index, value in enumerate(row):
            if value is None:
                continue
            height = HEIGHT * max(value, 0) / most
            parts.append(f'<rect x="{left + index * width:.1f}" y="{TOP + HEIGHT - height:.1f}" width="{max(width - 1, 1):.1f}" '
                         f'height="{height:.1f}" fill="{COLOURS[index % len(COLOURS)]}">'
                         f"<title>{text(name)}, {text(exhibit.columns[index])}: {number(value, exhibit.digits)}</title></rect>")
        parts.append(_label(name, left + 0.4 * group, slanted))
    for column, mean in exhibit.paper.items():
        y, colour = TOP + HEIGHT * (1 - mean / most), COLOURS[exhibit.columns.index(column) % len(COLOURS)]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-dasharray="6 4">'
                     f"<title>{text(column)}: the paper's mean is {number(mean, exhibit.digits)}</title></line>")
    return (f'<svg viewBox="0 0 {WIDTH} {TOP + HEIGHT + 16 + bottom:.0f}" role="img" aria-label="{text(exhibit.title)}">'
            + "".join(parts) + "</svg>")


def _table(head, rows, kind=""):
    def cells(tag, row):
        return "<tr>" + "".join(f"<{tag}>{each}</{tag}>" for each in row) + "</tr>"
    return f'<table class="{kind}">' + cells("th", head) + "".join(cells("td", row) for row in rows) + "</table>"


def _claims(reproduction):
    verdicts = {True: '<span class="yes">yes</span>', False: '<span class="no">no</span>', None: VERDICTS[None]}
    rows = [[text(claim.text), text(claim.paper), text(claim.ours), verdicts[claim.holds], text(claim.why if claim.holds is False else "")]
            for claim in reproduction.claims]
    return _table(["claim", "paper", "ours", "holds", "why not"], rows, "claims")


def page(reproduction):
    parts = [f"<h1>{text(reproduction.title)}, {text(reproduction.way)}</h1>",
             f"<p>Made by <code>{text(reproduction.command)}</code>. Dashed lines: the paper's means.</p>", _claims(reproduction)]
    if reproduction.not_run:
        parts.append("<h2>What did not run</h2><ul>" + "".join(f"<li>{text(each)}</li>" for each in reproduction.not_run) + "</ul>")
    for exhibit in reproduction.exhibits:
        parts.append(f"<h2>{text(exhibit.name)}: {text(exhibit.title)}</h2>{bars(exhibit)}")
        parts.append(_table([text(exhibit.unit), *map(text, exhibit.columns)],
                            [[text(cell) for cell in row] for row in rows_of(exhibit)]))
        parts += [f"<p>{text(note)}</p>" for note in exhibit.notes]
    parts.append("<h2>What the paper leaves open, and how it was settled</h2><ul>"
                 + "".join(f"<li>{text(each)}</li>" for each in reproduction.settled) + "</ul>")
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{text(reproduction.title)}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>' + "\n".join(parts) + "</body></html>\n")


def write(reproduction, directory):
    """PAPER.html and PAPER.md in `directory`, which is made if need be. Their paths."""
    os.makedirs(directory, exist_ok=True)
    paths = []
    for kind, content in (("html", page(reproduction)), ("md", markdown(reproduction))):
        paths.append(os.path.join(directory, f"{reproduction.paper}.{kind}"))
        with open(paths[-1], "w", encoding="utf-8") as out:
            out.write(content)
    return paths
