#include "store/s3/client/probe_bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "core/hex.h"
#include "core/id.h"
#include "store/s3/client/s3_xml.h"
#include "store/s3/conditions.h"

namespace hapax {

namespace {

using Verdict = Finding::Verdict;
using Verb = S3Request::Verb;

constexpr int kRacers = 16, kRounds = 5;

std::string random_name() {
  std::uint8_t bytes[8];
  fill_random(bytes, sizeof bytes);
  std::string name;
  for (const std::uint8_t byte : bytes) append_hex(name, byte);
  return name;
}

std::string describe(const S3Answer& answer) {
  if (answer.status == 0) return answer.message;
  return fmt::format("{} {}", answer.status, answer.code);
}

std::string if_match(EtagForm form, const std::string& etag) {
  return form == EtagForm::quoted ? "If-Match: \"" + etag + "\"" : "If-Match: " + etag;
}

class Probe {
 public:
  explicit Probe(S3Wire& wire) : wire_(wire), folder_(wire.address().prefix + "doctor/" + random_name() + "/") {}

  std::vector<Finding> run() {
    if (check_reach() && check_permissions()) {
      if (check_create() && check_replace()) check_races();
      check_clock();
      check_versions();
    }
    clean_up();
    return std::move(findings_);
  }

 private:
  S3Request request(Verb verb, const std::string& name, std::string body = "", std::vector<std::string> headers = {}) {
    return {.verb = verb, .key = folder_ + name, .headers = std::move(headers), .body = std::move(body)};
  }

  S3Request listing() {
    return {.verb = Verb::list, .query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", folder_}}};
  }

  S3Answer put(const std::string& name, std::string body, std::vector<std::string> headers = {}) {
    return wire_.ask(request(Verb::put, name, std::move(body), std::move(headers)));
  }

  void add(Verdict verdict, std::string about, std::string says) {
    findings_.push_back({verdict, std::move(about), std::move(says)});
  }

  bool fail(std::string about, std::string says) {
    add(Verdict::fail, std::move(about), std::move(says));
    return false;
  }

  bool check_reach() {
    const S3Answer answer = wire_.ask(request(Verb::get, "nothing"));
    if (answer.status == 0 && !answer.untrusted) {
      return fail("bucket", fmt::format("{} does not answer: {}", wire_.address().endpoint, answer.message));
    }
    const bool known = answer.ok() || (answer.status == 404 && answer.code != "NoSuchBucket") ||
                       (answer.status == 403 && answer.code == "AccessDenied");
    if (!known) return fail("bucket", explain_refusal(wire_.address(), answer).what());
    add(Verdict::ok, "bucket", fmt::format("{} at {} answers", wire_.address().name(), wire_.address().endpoint));
    return true;
  }

  bool check_permissions() {
    std::vector<std::string> missing;
    const auto need = [&](const char* permission, const S3Answer& answer, bool fine) {
      if (!fine) missing.push_back(fmt::format("{} ({})", permission, describe(answer)));
    };
    const S3Answer written = put("permissions", "written by hapax doctor");
    need("s3:PutObject", written, written.ok());
    const S3Answer read = wire_.ask(request(Verb::get, "permissions"));
    need("s3:GetObject", read, written.ok() ? read.ok() : read.status != 403);
    const S3Answer listed = wire_.ask(listing());
    need("s3:ListBucket", listed, listed.ok());
    const S3Answer removed = wire_.ask(request(Verb::remove, "permissions"));
    need("s3:DeleteObject", removed, removed.ok() || removed.status == 404);
    if (!missing.empty()) return fail("permissions", fmt::format("missing: {}", fmt::join(missing, ", ")));
    const auto objects = parse_listing(listed.body);
    if (!objects || objects->objects.size() != 1) {
      return fail("listing", "what has just been written is not listed; Hapax needs listings that are never stale");
    }
    add(Verdict::ok, "permissions", "it lets us put, get, list and delete, and lists what was just written");
    return true;
  }

  bool check_create() {
    if (const S3Answer first = put("created", "first", {"If-None-Match: *"}); !first.ok()) {
      return fail("If-None-Match",
                  fmt::format("a new object cannot be created with it: {}. {}", describe(first), kNeedsConditions));
    }
    const S3Answer second = put("created", "second", {"If-None-Match: *"});
    if (second.ok()) {
      return fail("If-None-Match", fmt::format("an object that exists was overwritten. {}", kNeedsConditions));
    }
    if (second.status != 412 && second.status != 409) {
      return fail("If-None-Match", fmt::format("an object that exists is refused with {}, not 412", describe(second)));
    }
    add(Verdict::ok, "If-None-Match", "creates only what is not there");
    return true;
  }

  bool check_replace() {
    const std::string etag = put("replaced", "first").etag;
    for (const EtagForm form : {EtagForm::quoted, EtagForm::bare}) {
      const S3Answer replaced = put("replaced", form == EtagForm::quoted ? "second" : "third", {if_match(form, etag)});
      if (!replaced.ok()) continue;
      const S3Answer stale = put("replaced", "stale", {if_match(form, etag)});
      const S3Answer absent = put("absent", "absent", {if_match(form, etag)});
      if (stale.ok() || absent.ok()) {
        return fail("If-Match", fmt::format("{} was overwritten. {}",
                                            stale.ok() ? "a newer version" : "a missing object", kNeedsConditions));
      }
      form_ = form;
      add(Verdict::ok, "If-Match",
          fmt::format("replaces only the version it names; the etag is written {} quotation marks",
                      form == EtagForm::quoted ? "with" : "without"));
      return true;
    }
    return fail("If-Match", fmt::format("the version that is there cannot be replaced. {}", kNeedsConditions));
  }

  // Many at once: exactly one is to win, and what it wrote is to be what is there.
  std::optional<std::string> race(const std::string& name, const std::string& condition) {
    std::vector<S3Request> requests;
    for (int i = 0; i < kRacers; ++i) {
      requests.push_back(request(Verb::put, name, fmt::format("{} {}", condition, i), {condition}));
    }
    const std::vector<S3Answer> answers = wire_.ask_all(std::move(requests));
    const S3Answer found = wire_.ask(request(Verb::get, name));
    std::vector<Racer> racers;
    for (int i = 0; i < kRacers; ++i) {
      const S3Answer& answer = answers[static_cast<std::size_t>(i)];
      const bool unknown = answer.status == 0 || answer.status >= 500;
      racers.push_back({answer.ok() ? Racer::End::won
                        : unknown   ? Racer::End::unknown
                                    : Racer::End::lost,
                        fmt::format("{} {}", condition, i)});
    }
    return judge_race(racers, found.body);
  }

  void check_races() {
    for (int round = 0; round < kRounds; ++round) {
      const std::string name = fmt::format("race {}", round);
      auto wrong = race(name, "If-None-Match: *");
      if (!wrong) wrong = race(name, if_match(form_, wire_.ask(request(Verb::get, name)).etag));
      if (!wrong) continue;
      fail("concurrency", fmt::format("{}. {}", *wrong, kNeedsConditions));
      return;
    }
    add(Verdict::ok, "concurrency",
        fmt::format("{} conditional writes at once, {} times: one wins each time", kRacers, 2 * kRounds));
  }

  void check_clock() {
    const Time machine = SystemClock().now();
    const auto now = wire_.clock().now(Monotonic::now(), machine);
    if (!now) {
      fail("bucket clock", "its answers have no Date header, and leases need the time");
      return;
    }
    constexpr Duration kLittle{2'000};
    const Duration ahead = *now - machine;
    if (std::chrono::abs(ahead) <= kLittle) {
      add(Verdict::ok, "bucket clock", fmt::format("agrees with this machine's within {}", format_duration(kLittle)));
      return;
    }
    add(Verdict::warn, "bucket clock",
        fmt::format("is {} {} of this machine's; Hapax goes by the bucket's, but set this machine's right",
                    format_duration(std::chrono::abs(ahead)), ahead > Duration(0) ? "ahead" : "behind"));
  }

  void check_versions() {
    const S3Answer answer = wire_.ask({.verb = Verb::get, .query = {{"versioning", ""}}});
    if (!answer.ok() || text_of(answer.body, "Status") != "Enabled") return;
    add(Verdict::warn, "versioning",
        "is on: every overwritten version is kept, and paid for; `hapax migrate` sets a lifecycle rule that expires "
        "them "
        "after a day");
  }

  void clean_up() {
    const auto left = parse_listing(wire_.ask(listing()).body);
    std::vector<S3Request> requests;
    for (const Listed& object : left ? left->objects : std::vector<Listed>()) {
      requests.push_back({.verb = Verb::remove, .key = object.name});
    }
    wire_.ask_all(std::move(requests));
  }

  S3Wire& wire_;
  const std::string folder_;
  EtagForm form_ = EtagForm::quoted;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> probe_bucket(S3Wire& wire) { return Probe(wire).run(); }

}  // namespace hapax
