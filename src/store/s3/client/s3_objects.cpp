#include "store/s3/client/s3_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>

#include "store/s3/client/s3_xml.h"

namespace hapax {

namespace {

constexpr std::int32_t kPage = 1000;        // the most that one LIST answers
constexpr Duration kClockAge{10 * 60'000};  // older, and the bucket is asked for the time again

bool may_help_to_repeat(const S3Answer& answer) {
  if (answer.status == 0) return !answer.untrusted;
  if (answer.code == "RequestTimeout" || answer.code == "RequestTimeTooSkewed") return true;
  return (answer.status >= 500 && answer.status != 501) || answer.status == 429 || answer.status == 408;
}

Duration random_part_of(Duration longest) {
  thread_local std::minstd_rand random{std::random_device()()};
  return Duration(std::uniform_int_distribution<std::int64_t>(0, longest.count())(random));
}

std::string describe(const S3Answer& answer) {
  if (answer.status == 0) return answer.message;
  return fmt::format("{} {}{}{}", answer.status, answer.code, answer.message.empty() ? "" : ": ", answer.message);
}

// How bad it is that a batch ended so: what the caller may do next shrinks from left to right.
int gravity(Failure::Code code) {
  return code == Failure::Code::unavailable ? 0 : code == Failure::Code::outcome_unknown ? 1 : 2;
}

}  // namespace

Failure explain_refusal(const S3Address& address, const S3Answer& answer) {
  const auto misuse = [&](const std::string& why) {
    return Failure(Failure::Code::misuse, fmt::format("{} at {}: {}", address.name(), address.endpoint, why));
  };
  if (answer.ok()) return misuse("its answer is not what S3 answers; is the endpoint right?");
  if (answer.untrusted) {
    return misuse(answer.message + "; if the certificate is one of your own, name its file in AWS_CA_BUNDLE");
  }
  if (answer.code == "NoSuchBucket") return misuse("there is no such bucket; create it, or mend the URL");
  if (!answer.region.empty() && answer.region != address.region) {
    return misuse(fmt::format("the bucket is in region {0}; write ?region={0} behind the URL", answer.region));
  }
  if (answer.code == "InvalidAccessKeyId") return misuse("the access key is not known there");
  if (answer.code == "SignatureDoesNotMatch") return misuse("the secret key does not belong to the access key");
  if (answer.code == "ExpiredToken") return misuse("the session token has expired; get new credentials");
  if (answer.status == 403) {
    return misuse(
        fmt::format("access is denied ({}); `hapax doctor --store URL` says what is missing", describe(answer)));
  }
  return misuse(fmt::format("it answers {}", describe(answer)));
}

// One of a batch. Lives on the wire's thread from start() until it is settled.
class S3Objects::Item {
 public:
  // What waits for a batch.
  struct Batch {
    std::mutex mutex;
    std::condition_variable settled;
    std::size_t open = 0;
  };

  Item(S3Objects& objects) : objects_(objects) {}
  virtual ~Item() = default;

  void start(Batch& batch) {
    batch_ = &batch;
    send(Duration(0));
  }

  const std::optional<Failure>& failure() const { return failure_; }

 protected:
  enum class Next { settled, now, later };

  // What to send now, and what to make of its answer.
  virtual S3Request request() = 0;
  virtual Next take(S3Answer& answer) = 0;

  Next refuse(const S3Answer& answer) {
    failure_.emplace(explain_refusal(objects_.wire_.address(), answer));
    return Next::settled;
  }

  S3Objects& objects_;
  bool may_be_done_ = false;  // a write whose answer was lost

 private:
  void send(Duration after) {
    ++tries_;
    S3Request next = request();
    next.deadline = deadline_;
    objects_.wire_.send(std::move(next), after, [this](S3Answer answer) { answered(std::move(answer)); });
  }

  void answered(S3Answer answer) {
    const Next next = take(answer);
    if (next == Next::settled) return settle();
    const auto pause = next == Next::now ? Duration(0) : random_part_of(pause_);
    const bool over = CallDeadline::Clock::now() + pause >= deadline_ || objects_.interrupted_;
    if (tries_ >= objects_.options_.tries || over) return give_up(answer);
    send(pause);
    if (next == Next::later) pause_ = std::min(pause_ * 2, objects_.options_.longest_pause);
  }

  void give_up(const S3Answer& answer) {
    const S3Address& address = objects_.wire_.address();
    failure_.emplace(may_be_done_ ? Failure::Code::outcome_unknown : Failure::Code::unavailable,
                     fmt::format("{} at {} does not answer as it should, tried {} times; the last answer: {}",
                                 address.name(), address.endpoint, tries_, describe(answer)),
                     "The bucket did not answer as it should.");
    settle();
  }

  void settle() {
    const std::lock_guard lock(batch_->mutex);
    if (--batch_->open == 0) batch_->settled.notify_all();
  }

  Batch* batch_ = nullptr;
  // On the caller's thread, whose deadline it is.
  const CallDeadline::Instant deadline_ = std::min(
      CallDeadline::current(), CallDeadline::Clock::now() + std::min(objects_.options_.patience, kLongestPatience));
  int tries_ = 0;
  Duration pause_ = objects_.options_.first_pause;
  std::optional<Failure> failure_;
};

class S3Objects::GetItem final : public Item {
 public:
  GetItem(S3Objects& objects, const std::string& name) : Item(objects), name_(name) {}

  std::optional<Object> found;

 private:
  S3Request request() override { return {.verb = S3Request::Verb::get, .key = objects_.key_of(name_)}; }

  Next take(S3Answer& answer) override {
    if (answer.ok()) {
      found = Object{name_, std::move(answer.body), std::move(answer.etag)};
      return Next::settled;
    }
    if (answer.status == 404 && answer.code != "NoSuchBucket") return Next::settled;
    return may_help_to_repeat(answer) ? Next::later : refuse(answer);
  }

  const std::string& name_;
};

class S3Objects::PutItem final : public Item {
 public:
  PutItem(S3Objects& objects, const Put& put) : Item(objects), put_(put) {}

  PutOutcome outcome;

 private:
  S3Request request() override {
    if (reads_back_) return {.verb = S3Request::Verb::get, .key = objects_.key_of(put_.name)};
    S3Request request{.verb = S3Request::Verb::put, .key = objects_.key_of(put_.name), .body = put_.body};
    if (!put_.replaces) {
      request.headers.push_back("If-None-Match: *");
    } else {
      form_ = objects_.etag_form_;
      request.headers.push_back(
          fmt::format(fmt::runtime(form_ == EtagForm::quoted ? "If-Match: \"{}\"" : "If-Match: {}"), *put_.replaces));
    }
    return request;
  }

  Next take(S3Answer& answer) override { return reads_back_ ? take_read(answer) : take_written(answer); }

  Next take_written(S3Answer& answer) {
    if (answer.ok()) {
      if (put_.replaces) objects_.etag_form_known_ = true;
      return written(std::move(answer.etag));
    }
    if (answer.code == "NoSuchBucket") return refuse(answer);
    if (answer.status == 404 && put_.replaces) return Next::settled;
    if (answer.status == 412) {
      refused_ = true;
      // A request without a body curl may have sent twice by itself.
      const bool clear = !may_be_done_ && !put_.body.empty() && (!put_.replaces || objects_.etag_form_known_);
      return clear ? Next::settled : read_back(Next::now);
    }
    // Another write at the same time: whether one of them was done, the object says.
    if (answer.status == 409) {
      refused_ = false;
      return read_back(Next::now);
    }
    if (!may_help_to_repeat(answer)) return refuse(answer);
    refused_ = false;
    if (!answer.sent) return Next::later;
    may_be_done_ = true;
    return read_back(Next::later);
  }

  Next take_read(S3Answer& answer) {
    if (answer.ok() && answer.body == put_.body) return written(std::move(answer.etag));
    if (answer.ok() && answer.etag != put_.replaces) return Next::settled;
    if (answer.ok()) {
      // Refused, and yet the object has that very version: then it is the form of the etag that is not understood.
      if (refused_) {
        objects_.etag_form_ = form_ == EtagForm::quoted ? EtagForm::bare : EtagForm::quoted;
        objects_.etag_form_known_ = false;
      }
      return write_again(refused_);
    }
    if (answer.status == 404 && answer.code != "NoSuchBucket") {
      return put_.replaces ? Next::settled : write_again(false);
    }
    return may_help_to_repeat(answer) ? Next::later : refuse(answer);
  }

  Next written(Etag etag) {
    outcome = {true, std::move(etag)};
    return Next::settled;
  }

  Next read_back(Next when) {
    reads_back_ = true;
    return when;
  }

  Next write_again(bool at_once) {
    reads_back_ = false;
    return at_once ? Next::now : Next::later;
  }

  const Put& put_;
  EtagForm form_ = EtagForm::quoted;  // as it was sent
  bool reads_back_ = false;
  bool refused_ = false;  // the last writing, by a 412
};

class S3Objects::RemoveItem final : public Item {
 public:
  RemoveItem(S3Objects& objects, const std::string& name) : Item(objects), name_(name) {}

 private:
  S3Request request() override { return {.verb = S3Request::Verb::remove, .key = objects_.key_of(name_)}; }

  Next take(S3Answer& answer) override {
    if (answer.ok() || (answer.status == 404 && answer.code != "NoSuchBucket")) return Next::settled;
    may_be_done_ = may_be_done_ || answer.sent;
    return may_help_to_repeat(answer) ? Next::later : refuse(answer);
  }

  const std::string& name_;
};

class S3Objects::ListItem final : public Item {
 public:
  ListItem(S3Objects& objects, const std::string& prefix, const std::string& after, std::string token,
           std::int32_t limit)
      : Item(objects), prefix_(prefix), after_(after), token_(std::move(token)), limit_(limit) {}

  Listing listing;
  std::string next_token;

 private:
  S3Request request() override {
    S3Request request{.verb = S3Request::Verb::list};
    request.query = {{"list-type", "2"},
                     {"encoding-type", "url"},
                     {"max-keys", std::to_string(limit_)},
                     {"prefix", objects_.key_of(prefix_)}};
    if (!token_.empty()) {
      request.query.emplace_back("continuation-token", token_);
    } else if (!after_.empty()) {
      request.query.emplace_back("start-after", objects_.key_of(after_));
    }
    return request;
  }

  Next take(S3Answer& answer) override {
    if (!answer.ok()) return may_help_to_repeat(answer) ? Next::later : refuse(answer);
    auto parsed = parse_listing(answer.body);
    if (!parsed) return refuse(answer);
    if (parsed->more) next_token = text_of(answer.body, "NextContinuationToken").value_or("");
    if (parsed->more && next_token.empty()) return refuse(answer);
    const std::size_t prefix = objects_.wire_.address().prefix.size();
    for (Listed& object : parsed->objects) object.name.erase(0, prefix);
    listing = std::move(*parsed);
    return Next::settled;
  }

  const std::string &prefix_, &after_;
  const std::string token_;
  const std::int32_t limit_;
};

S3Objects::S3Objects(S3Address address, S3ObjectsOptions options)
    : options_(std::move(options)), wire_(std::move(address), options_.wire) {}

S3Objects::~S3Objects() = default;

template <class Items>
void S3Objects::run(Items& items) {
  Item::Batch batch;
  batch.open = items.size();
  for (Item& item : items) item.start(batch);
  std::unique_lock lock(batch.mutex);
  batch.settled.wait(lock, [&] { return batch.open == 0; });
  const Failure* worst = nullptr;
  for (Item& item : items) {
    const std::optional<Failure>& failure = item.failure();
    if (failure && (!worst || gravity(failure->code()) > gravity(worst->code()))) worst = &*failure;
  }
  if (worst) throw Failure(*worst);
}

void S3Objects::interrupt() {
  interrupted_ = true;
  wire_.interrupt();
}

Time S3Objects::now() {
  const auto age = wire_.clock().age(Monotonic::now());
  if (!age || *age > kClockAge) get("format.json");  // any answer has a date
  const auto now = wire_.clock().now(Monotonic::now(), SystemClock().now());
  if (!now) {
    throw Failure(Failure::Code::misuse, fmt::format("{} does not say what time it is: its answers have no Date header",
                                                     wire_.address().endpoint));
  }
  return *now;
}

std::vector<std::optional<Object>> S3Objects::get(std::span<const std::string> names) {
  std::deque<GetItem> items;
  for (const std::string& name : names) items.emplace_back(*this, name);
  run(items);
  std::vector<std::optional<Object>> found;
  for (GetItem& item : items) found.push_back(std::move(item.found));
  return found;
}

std::vector<PutOutcome> S3Objects::put(std::span<const Put> puts) {
  std::deque<PutItem> items;
  for (const Put& put : puts) items.emplace_back(*this, put);
  run(items);
  std::vector<PutOutcome> outcomes;
  for (PutItem& item : items) outcomes.push_back(std::move(item.outcome));
  return outcomes;
}

void S3Objects::remove(std::span<const std::string> names) {
  std::deque<RemoveItem> items;
  for (const std::string& name : names) items.emplace_back(*this, name);
  run(items);
}

Listing S3Objects::list(const std::string& prefix, const std::string& after, std::int32_t limit) {
  Listing all;
  std::string token;
  for (;;) {
    const std::int32_t left = limit - static_cast<std::int32_t>(all.objects.size());
    std::deque<ListItem> items;
    items.emplace_back(*this, prefix, after, token, std::min(left, kPage));
    run(items);
    Listing& page = items.front().listing;
    token = std::move(items.front().next_token);
    all.more = page.more;
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(all.objects));
    // A page may be empty although there are more.
    if (!all.more || std::ssize(all.objects) >= limit) return all;
  }
}

}  // namespace hapax
