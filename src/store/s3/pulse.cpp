#include "store/s3/pulse.h"

#include <utility>

#include "core/failure.h"
#include "core/json_writer.h"
#include "store/s3/documents/envelope.h"
#include "store/s3/documents/names.h"

namespace hapax::s3 {

namespace {

// A writer may have died before it announced its change, so everyone polls now and then.
constexpr std::chrono::seconds kAnyway{30};

}  // namespace

Pulse::Pulse(std::shared_ptr<ObjectStore> objects, std::chrono::milliseconds interval,
             std::function<bool()> is_same_store)
    : objects_(std::move(objects)), interval_(interval), is_same_store_(std::move(is_same_store)) {}

Pulse::~Pulse() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Pulse::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
}

void Pulse::carry(std::string identity) {
  const std::lock_guard lock(mutex_);
  identity_ = std::move(identity);
}

std::string Pulse::content() {
  const std::lock_guard lock(mutex_);
  JsonWriter json;
  return json.begin_object().key("store").string(identity_).end_object().take();
}

void Pulse::changed() {
  if (interval_.count() == 0) return;
  const std::lock_guard lock(mutex_);
  if (std::exchange(changed_, true)) return;
  start();
  wake_.notify_all();
}

void Pulse::listen(std::function<void()> on_change) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return !working_; });
  on_change_ = std::move(on_change);
  seen_.reset();
  told_at_ = std::chrono::steady_clock::now();
  if (on_change_ && interval_.count() > 0) start();
  wake_.notify_all();
}

void Pulse::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || changed_ || on_change_; });
    const bool last = stopping_;
    const bool tell = std::exchange(changed_, false);
    if (last && !tell) return;
    working_ = true;
    const auto on_change = on_change_;
    lock.unlock();
    bool news = false, failed = false;
    try {
      if (tell) beat();
      if (on_change) news = look();
    } catch (const Failure&) {
      news = failed = true;  // unknown: rather once too often
    }
    if (news && on_change && !last) on_change();
    lock.lock();
    working_ = false;
    changed_ = changed_ || (failed && tell);
    wake_.notify_all();
    if (last) return;
    wake_.wait_for(lock, interval_, [this] { return stopping_; });
  }
}

bool Pulse::is_ours(const std::optional<Object>& pulse) {
  return pulse && unseal(pulse->name, pulse->body).content == content();
}

// A beat that another one overtakes is as good as done: that one came later than the change.
void Pulse::beat() {
  const std::string name(kPulse);
  const auto object = objects_->get(name);
  if (!is_ours(object) && !is_same_store_()) return;
  objects_->put(Put{name, seal(content()), object ? std::optional(object->etag) : std::nullopt});
}

bool Pulse::look() {
  const auto object = objects_->get(std::string(kPulse));
  const Etag etag = object ? object->etag : Etag();
  const auto now = std::chrono::steady_clock::now();
  const bool news = seen_ != etag || now - told_at_ >= kAnyway;  // the first read is news: the state before is unknown
  if (news && !is_ours(object)) is_same_store_();
  seen_ = etag;
  if (news) told_at_ = now;
  return news;
}

}  // namespace hapax::s3
