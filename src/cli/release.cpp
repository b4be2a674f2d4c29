#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/paint.h"
#include "cli/submission_flags.h"
#include "cli/target.h"
#include "core/json_writer.h"
#include "core/name.h"

namespace hapax {

namespace {

struct ReleaseFlags {
  TargetFlags target;
  std::string type, key, hash;
  std::optional<std::string> scope, queue;
  bool yes = false;
};

std::string describe_owner(const FoundIdentity& found, Time now) {
  const std::string owner = found.entry.owner.to_string();
  if (found.owner) {
    return fmt::format("{}, {}, submitted {}", owner, to_string(found.owner->status),
                       relative(found.owner->created_at, now));
  }
  const auto& tombstone = found.entry.tombstone;
  return tombstone ? fmt::format("{}, {}, past its retention", owner, to_string(tombstone->status)) : owner;
}

bool confirmed(const Program& program, const ReleaseFlags& flags) {
  if (flags.yes || !program.input_terminal) return true;
  program.err << "Free it, so that the next submission creates a new task? [y/N] " << std::flush;
  std::string answer;
  std::getline(program.in, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void check(const ReleaseFlags& flags) {
  if (flags.hash.empty() && (flags.type.empty() || flags.key.empty())) {
    throw CommandError(kUsage, "which key? Give --type and --key, or --hash");
  }
  if (!flags.hash.empty() && (!flags.type.empty() || !flags.key.empty())) {
    throw CommandError(kUsage, "--hash replaces --type and --key: leave them out");
  }
  if (!flags.hash.empty()) return;
  require_name("--type", flags.type);
  require_utf8("--key", flags.key);
  if (const auto wrong = check_idempotency_key(flags.key)) throw CommandError(kUsage, "--key " + *wrong);
  if (flags.scope) require_name("--scope", *flags.scope);
  if (flags.queue) require_name("--queue", *flags.queue);
}

IdentityHash find_hash(const Program& program, const ReleaseFlags& flags, const Target& target) {
  if (!flags.hash.empty()) {
    const auto hash = IdentityHash::parse(flags.hash);
    if (!hash) throw CommandError(kUsage, "--hash must be \"sha256:\" and 64 hexadecimal digits, as explain shows it");
    return *hash;
  }
  const auto scope = flags.scope ? std::optional(Scope::parse(*flags.scope)) : std::nullopt;
  const auto found = target.engine->find_identity(target.name_space, flags.type, scope, flags.queue, flags.key);
  if (!found) {
    throw CommandError(kNotFound, fmt::format("no task owns the key '{}' of type '{}'; is it in another --scope?",
                                              flags.key, flags.type));
  }
  if (!flags.target.json()) {
    program.err << fmt::format("the key '{}' belongs to {}{}", printable(flags.key),
                               describe_owner(*found, SystemClock().now()),
                               found->live ? "" : "; it has expired already")
                << std::endl;
  }
  return found->entry.identity.hash;
}

int release(const Program& program, const ReleaseFlags& flags) {
  check(flags);
  const Target target = flags.target.open(program);
  const IdentityHash hash = find_hash(program, flags, target);
  if (!confirmed(program, flags)) {
    program.err << "hapax: nothing was changed\n";
    return kFailed;
  }
  const bool released = target.engine->release_identity(target.name_space, hash);
  if (flags.target.json()) {
    JsonWriter out;
    out.begin_object().key("identity_hash").string(hash.to_string()).key("released").boolean(released).end_object();
    program.out << out.text() << std::endl;
  } else if (released) {
    program.out << "released " << hash.to_string() << std::endl;
  }
  if (released) return kOk;
  if (!flags.target.json()) program.err << "hapax: no task owns " << hash.to_string() << "\n";
  return kNotFound;
}

}  // namespace

void add_release(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("release", "Free a key: the next submission with it creates a new task");
  auto flags = std::make_shared<ReleaseFlags>();
  command->add_option("--type", flags->type, "The type of the task that owns it")->type_name("TYPE");
  command->add_option("--key", flags->key, "The idempotency key")->type_name("KEY");
  command->add_option("--scope", flags->scope, "Its scope (default: as the type says)")->type_name("SCOPE");
  command->add_option("--queue", flags->queue, "Its queue, for keys of scope queue")->type_name("QUEUE");
  command->add_option("--hash", flags->hash, "Instead: the identity hash, as explain shows it")->type_name("HASH");
  command->add_flag("--yes,-y", flags->yes, "Do not ask");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return release(program, *flags); }; });
}

}  // namespace hapax
