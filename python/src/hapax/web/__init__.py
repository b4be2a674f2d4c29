"""The Idempotency-Key header, by the IETF draft, whatever the framework: `hapax.asgi`, `hapax.django`, `hapax.flask`.

`rules.py` says which requests are meant and what a key is; `gate.py` lets a request pass once for its key;
`answers.py` has the answers that are stored, and those that the middleware gives itself.
"""

from hapax.web.answers import Answer
from hapax.web.gate import Asked, Gate
from hapax.web.rules import Rules

__all__ = ["Answer", "Asked", "Gate", "Rules"]
