// The engine of a server far away.
#pragma once

#include <memory>
#include <string>

#include "core/failure.h"
#include "engine/engine.h"

namespace hapax {

struct RemoteOptions {
  std::string url;  // http://host:port or https://host:port
  std::string token;
  std::string name_space = "default";
};

// The server understood the request and refused it (a wrong token, a bad name): what() is its sentence, code() as a
// Failure is misuse: the same again does not help. Verbs with a Reply answer with it like with any other Failure.
class RemoteRefusal : public Failure {
 public:
  RemoteRefusal(std::string word, const std::string& message)
      : Failure(Failure::Code::misuse, message), word_(std::move(word)) {}

  // The server's word for it: "Unauthorized", "InvalidRequest".
  const std::string& word() const { return word_; }

 private:
  std::string word_;
};

// Connects on the first call. All calls of this engine are for the namespace of the options, whatever they name. Throws
// Failure::misuse if a token or namespace cannot be part of a request.
//
// Verbs with a Reply answer before they return, except a claim that waits: it answers on a thread that all of them
// share. A claim that is cancelled while the server hands out tasks may leave them with leases that nobody holds; they
// come back when those end.
//
// What a server does not tell is left out: lease secrets (but of claims), when a cancel was requested, what a finished
// report led to, and the counters, which are zero.
//
// A request whose answer was lost is sent again by itself where the server recognises it: submissions only if every
// task in it has a key or a strategy of its own. Otherwise it is Failure::outcome_unknown.
std::unique_ptr<Engine> connect_engine(RemoteOptions options);

}  // namespace hapax
