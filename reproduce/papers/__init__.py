"""The tables of the papers beside ours: what was published, and what our metrics reach by the same protocol.

`tables` says what a table is; `density`, `dailydialogpp`, `quantidce`, `fbd_prd` and `cmn` hold the published
numbers and how ours are asked for, and `listing` gathers them; `measured` looks ours up among kept values; `render`
writes Markdown.
"""
