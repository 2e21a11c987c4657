// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// `sealane keygen FILE`: a key file for a training group. `sealane keygen --certificates N DIR`: an
// authority and a certificate for each rank. Nothing is ever overwritten.

#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/try.h"
#include "cli/certificates.h"
#include "cli/command.h"
#include "comm/key_file.h"
#include "core/session/identity.h"
#include "report/output.h"

namespace sealane::cli {
namespace {

struct KeyFlags {
  std::string path;
  uint32_t certificates = 0;
  std::string group = "default";
  uint32_t days = 30;
};

constexpr mode_t kPublic = 0644;
constexpr mode_t kSecret = 0600;

Status write_new(const std::string& path, const std::string& text, mode_t mode) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) return io_error("cannot make " + path, errno);
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(file) == 0;
  const int error = errno;
  close(file);
  if (written) return {};
  unlink(path.c_str());
  return io_error("cannot write " + path, error);
}

Status write_pair(const std::string& base, CertifiedKey& pair, std::string& list) {
  const Status status = write_new(base + ".key", pair.key, kSecret);
  OPENSSL_cleanse(pair.key.data(), pair.key.size());
  if (!status) return status;
  list += base + ".pem\n" + base + ".key\n";
  return write_new(base + ".pem", pair.certificate, kPublic);
}

Status make_group_certificates(const KeyFlags& flags) {
  const Identity last{flags.group, flags.certificates, flags.certificates - 1};
  SEALANE_TRY(check_identity(last));
  if (mkdir(flags.path.c_str(), 0700) != 0) {
    if (errno != EEXIST) return io_error("cannot make the directory " + flags.path, errno);
    return usage_error(flags.path +
                       " exists, and keys are never overwritten: name another directory");
  }
  SEALANE_LET(auto made, make_certificates(flags.group, flags.certificates, flags.days));
  std::string list;
  SEALANE_TRY(write_pair(flags.path + "/ca", made.authority, list));
  for (size_t rank = 0; rank < made.ranks.size(); ++rank) {
    const std::string base = fmt::format("{}/{}", flags.path, rank);
    SEALANE_TRY(write_pair(base, made.ranks[rank], list));
  }
  return report::write_file("-", list);
}

Status make_key(const KeyFlags& flags) {
  if (flags.path.empty() || flags.path == "-") return usage_error("keygen needs a file's name");
  if (flags.certificates > 0) return make_group_certificates(flags);
  if (access(flags.path.c_str(), F_OK) == 0) {
    return usage_error(flags.path + " exists, and a key is never overwritten: name another file");
  }
  SEALANE_TRY(write_key_file(flags.path));
  return report::write_file("-", flags.path + "\n");
}

}  // namespace

void add_keygen(const Command& root) {
  const auto [command, flags] =
      add_command<KeyFlags>(root, "keygen", "Make a key file for a training group", &make_key);
  command.value("file", flags.path, "FILE", "Where to; never overwritten").required();
  command.value("--certificates", flags.certificates, "N",
                "Instead: a directory with an authority and certificates for so many ranks",
                whole_number(1, 65536));
  command.value("--group", flags.group, "NAME", "Of these ranks [default]").needs("--certificates");
  command.value("--days", flags.days, "N", "They are valid for [30]", whole_number(1, 3650))
      .needs("--certificates");
  command.footer(
      "Examples:\n"
      "  sealane keygen job.key                one key for all ranks\n"
      "  sealane keygen --certificates 8 pki   pki/ca.pem, pki/0.pem, pki/0.key, ...\n"
      "\n"
      "Copy the file to every host (mode 0600, by a channel you trust) and set\n"
      "SEALANE_KEY_FILE. Whoever has the key can pose as any rank; certificates bind\n"
      "a rank: set SEALANE_CA_FILE=ca.pem, SEALANE_CERT_FILE=R.pem and\n"
      "SEALANE_CERT_KEY_FILE=R.key on rank R alone, and put ca.key away\n"
      "(docs/collectives.md).");
}

}  // namespace sealane::cli
