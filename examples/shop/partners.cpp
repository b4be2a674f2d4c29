#include "partners.h"

#include <hapax/hapax.h>

#include <fstream>

namespace shop {

Partners::Partners(const std::string& file) : file_(file) {
  std::ifstream books(file_);
  for (std::string key, what, order; books >> key >> what >> order;) {
    keys_.insert(key);
    if (what == "charge") charged_.insert(order);
  }
}

std::string Partners::charge(const std::string& key, const std::string& order, std::int64_t cents) {
  if (cents > 100'000) throw hapax::FinalError("the card was declined");
  book(key, "charge", order);
  return "payment-" + order;
}

void Partners::refund(const std::string& key, const std::string& order) { book(key, "refund", order); }

std::string Partners::ship(const std::string& key, const std::string& order) {
  book(key, "ship", order);
  return "parcel-" + order;
}

void Partners::book(const std::string& key, const std::string& what, const std::string& order) {
  const std::lock_guard lock(mutex_);
  if (what == "refund" && !charged_.contains(order)) return;
  if (what == "charge") charged_.insert(order);
  if (keys_.insert(key).second) std::ofstream(file_, std::ios::app) << key << " " << what << " " << order << std::endl;
}

}  // namespace shop
