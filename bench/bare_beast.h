// A server on Boost.Beast that does nothing: what HTTP alone costs, as the limit for a server that does something.
#pragma once

namespace hapax::bench {

// Answers every request with the same text, on one thread, which is how many `hapax serve` has for connections on two
// processors. Prints "listening on http://127.0.0.1:PORT", as that does, and runs until SIGTERM.
void serve_bare_beast();

}  // namespace hapax::bench
