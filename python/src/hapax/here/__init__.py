"""Running a task in the process that submits it: `app.once`, and the Idempotency-Key middleware.

`attempt.py` submits and claims in one call, keeps the lease and reports; `leases.py` is the thread that keeps leases;
`once.py` is `app.once`.
"""
