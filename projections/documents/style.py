"""How an HTML document looks: on a phone, on a wide screen, in the dark and on paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1c1e; --faint: #6b6b70; --line: #dcdce0;
  --user: #e8f1fb; --assistant: #f3f3f5; --summary: #fbf4dd; --good: #1a7f37; --doubt: #9a6700;
  --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --paper: #161618; --ink: #ececf0; --faint: #9a9aa2;
  --line: #38383c; --user: #1b2c40; --assistant: #232326; --summary: #322c18; --good: #56c271;
  --doubt: #d9a441; --bad: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
main { max-width: 46rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.35rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: .85rem; font-weight: 600; color: var(--faint); margin: 1.75rem 0 .5rem;
  border-top: 1px solid var(--line); padding-top: .75rem; overflow-wrap: anywhere; }
header p, .note { color: var(--faint); margin: .25rem 0 .75rem; font-size: .85rem; }
article { background: var(--assistant); border-radius: .6rem; padding: .6rem .85rem; margin: .6rem 0; }
article.user { background: var(--user); margin-left: 8%; }
article.assistant, article.tool { margin-right: 8%; }
article.summary { background: var(--summary); }
article.synthetic { background: none; border: 1px dashed var(--line); color: var(--faint); }
section.out > article { opacity: .65; border-left: 3px solid var(--line); }
.undone .text { text-decoration: line-through; text-decoration-color: var(--faint); }
.head { margin: 0 0 .25rem; font-size: .8rem; color: var(--faint); }
.head b { color: var(--ink); }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.delivered { color: var(--good); } .partial, .in_doubt { color: var(--doubt); }
.undelivered { color: var(--bad); }
details { margin-top: .5rem; font-size: .9rem; }
summary { cursor: pointer; overflow-wrap: anywhere; color: var(--faint); }
summary b, summary code { color: var(--ink); }
pre { margin: .4rem 0 0; padding: .5rem .65rem; border: 1px solid var(--line); border-radius: .4rem;
  background: var(--paper); white-space: pre-wrap; overflow-wrap: anywhere;
  font: .82rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media print { body { font-size: 11pt; } main { max-width: none; padding: 0; }
  article { break-inside: avoid-page; border: 1px solid var(--line); }
  section.out > article { opacity: 1; }
  details::details-content { content-visibility: visible; block-size: auto; } }
"""
