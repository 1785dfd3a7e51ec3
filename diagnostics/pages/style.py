"""How pages look: legible at laptop width, in light, in dark, and on paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --soft: #5c6470; --paper: #ffffff;
  --line: #d8dce2; --wash: #f4f6f8; --good: #1a7f4b; --bad: #b3261e; --neutral: #44546a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --soft: #a3abb6; --paper: #15181d; --line: #363c45; --wash: #1e2329;
    --good: #5fcf96; --bad: #ff8a80; --neutral: #9fb3cc; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
main { max-width: 78rem; margin: 0 auto; padding: 1.5rem 2rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
p, ul { max-width: 52rem; }
a { color: inherit; }
.verdict { border-left: .4rem solid var(--neutral); background: var(--wash);
  padding: .75rem 1.25rem; border-radius: .25rem; }
.verdict.good { border-color: var(--good); }
.verdict.bad { border-color: var(--bad); }
.verdict p { margin: 0; font-size: 1.15rem; }
.verdict ul { margin: .5rem 0 0; padding-left: 1.25rem; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem;
  max-width: none; color: var(--soft); font-size: .95rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .92rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody th { font-weight: 600; }
td, tbody th { overflow-wrap: anywhere; min-width: 3rem; }
.number { text-align: right; }
.number, .short { white-space: nowrap; overflow-wrap: normal; }
td { font-variant-numeric: tabular-nums; }
tr.good > th { box-shadow: inset .25rem 0 var(--good); }
tr.bad > th { box-shadow: inset .25rem 0 var(--bad); }
tr.bad > * { color: var(--bad); }
figure { margin: 1.25rem 0 1.75rem; }
figure img { display: block; width: 100%; height: auto; background: #ffffff;
  border: 1px solid var(--line); border-radius: .25rem; }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .4rem; max-width: 52rem; }
pre { background: var(--wash); padding: .75rem 1rem; border-radius: .25rem;
  white-space: pre-wrap; overflow-wrap: anywhere; font-size: .88rem; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }
@media print { nav { display: none; } figure, tr { break-inside: avoid; } }
"""
