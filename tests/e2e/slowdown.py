"""A sanitizer makes the server several times slower: time limits in tests are multiplied by this."""

import os

SLOWDOWN = 10 if os.environ.get("HAPAX_SANITIZE") else 1
