// The engine over HTTP.
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

// The server understood the request and refused it (a wrong token): what() is its sentence, and its code() as a Failure
// is misuse, because repeating does not help. Verbs with a Reply answer with it like with any other Failure. Where it
// names the field at fault, it is an InvalidField instead.
class RemoteRefusal : public Failure {
 public:
  RemoteRefusal(std::string word, const std::string& message)
      : Failure(Failure::Code::misuse, message), word_(std::move(word)) {}

  // The server's code: "Unauthorized", "DecidedByFile".
  const std::string& word() const { return word_; }

 private:
  std::string word_;
};

// Connects on the first call. All calls of this engine are for the namespace of the options, whatever they name. Throws
// Failure::misuse if a token or namespace cannot be part of a request.
//
// Verbs with a Reply answer on threads of the engine. Submissions, reports, turns and heartbeats of all callers go out
// together while the last ones are under way. A claim that is cancelled while the server hands out tasks may leave them
// with leases that no worker holds; they are claimable again when those end.
//
// Values that a server does not send are left out: lease secrets (except of claims), when a cancel was requested, the
// effects of a report, and the counters, which are zero.
//
// After a lost answer a request is sent again if the server recognises it: a submission always, by its id. Otherwise it
// is Failure::outcome_unknown.
std::unique_ptr<Engine> connect_engine(RemoteOptions options);

}  // namespace hapax
