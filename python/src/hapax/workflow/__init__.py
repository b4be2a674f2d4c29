"""Workflows: durable functions, run by a deterministic event loop.

`run.py` has a run in memory, `loop.py` its event loop, `history.py` what it asked for beside what its history has,
`context.py` what the code can ask for, `guard.py` what it must not do, `threads.py` workflows that are plain functions.
"""
