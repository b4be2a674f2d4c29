// The test's own real S3 server: Ceph's gateway on free ports, with its data in memory. It ends with this process,
// however this process ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "store/s3/client/s3_url.h"
#include "support/temp_dir.h"

namespace hapax {

class S3Server {
 public:
  // Starts it within a few seconds and waits until it answers. Sets AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
  S3Server();
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  // The one that all tests of this process share.
  static S3Server& shared();

  std::uint16_t port() const { return port_; }

  // For https, and the certificate it shows there.
  std::uint16_t tls_port() const { return tls_port_; }
  std::string certificate() const { return dir_.file("s3/cert.pem"); }

  // A new prefix in a bucket; reached through a proxy on that port, if one is named.
  S3Address fresh_address(std::uint16_t proxy_port = 0);
  static std::string url_of(const S3Address& address);

 private:
  bool start();
  void stop();

  TempDir dir_ = TempDir::in_memory_if_possible();
  std::uint16_t port_ = 0, tls_port_ = 0;
  pid_t pid_ = -1;
  int input_ = -1;  // of the script, which stops the server when this is closed
  bool has_bucket_ = false;
  int prefixes_ = 0;
};

}  // namespace hapax
