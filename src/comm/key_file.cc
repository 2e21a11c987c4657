// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "comm/key_file.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/random.h"
#include "base/text.h"
#include "base/try.h"
#include "comm/key_source.h"
#include "os/descriptor.h"

namespace sealane {
namespace {

constexpr size_t kDigits = Key::kBytes * 2;
constexpr size_t kFileBytesMax = 1_MiB;

std::string to_hex(Bytes bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size() + 1);  // for the end of the line: growing would leave a copy behind
  for (const uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_group(gid_t group, const std::string& wanted) {
  if (wanted.empty()) return false;
  if (wanted == concat(group)) return true;
  std::array<char, 4096> space;
  struct group entry {};
  struct group* found = nullptr;
  return getgrnam_r(wanted.c_str(), &entry, space.data(), space.size(), &found) == 0 &&
         found != nullptr && found->gr_gid == group;
}

// A secret counts if nobody but its owner can read it, or a group that was named, and the owner is
// this user, or root, who can read everything anyway.
Status check_private(const struct stat& status, const std::string& path, const std::string& group) {
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return usage_error(concat(path, " belongs to another user: whoever he is, he knows it"));
  }
  if ((status.st_mode & 077) == 0) return {};
  if ((status.st_mode & 077) == 040) {  // group members may read, and nothing else
    if (is_group(status.st_gid, group)) return {};
    return usage_error(concat(path, " can be read by group ", status.st_gid,
                              "; if that is meant (Kubernetes' fsGroup), set SEALANE_KEY_GROUP=",
                              status.st_gid, ", else fix it with: chmod 600 ", path));
  }
  return usage_error(
      concat(path, " can be read by others than its owner; fix it with: chmod 600 ", path));
}

// The descriptor is checked and read, not the name: nobody can swap the file in between.
Result<std::string> read_private_file(const std::string& path, bool secret,
                                      const std::string& group = {}) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    return io_error("cannot read " + path, errno);
  }
  if (!S_ISREG(status.st_mode)) return usage_error(path + " is no file");
  if (secret) {
    SEALANE_TRY(check_private(status, path, group));
  }
  if (static_cast<uint64_t>(status.st_size) > kFileBytesMax) {
    return usage_error(path + " is too long for what it is");
  }
  std::string text(static_cast<size_t>(status.st_size),
                   '\0');  // never grows: no copies left behind
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t count = read(file.get(), text.data() + filled, text.size() - filled);
    if (count < 0) return io_error("cannot read " + path, errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  text.resize(filled);
  return text;
}

Result<Key> read_key(const JoinOptions& options) {
  const Instant deadline = SteadyClock().now() + std::min(options.timeout, kKeyPatience);
  if (!options.key_command.empty()) {
    if (options.key_file.empty()) return key_from_command(options.key_command, deadline);
    return usage_error("SEALANE_KEY_CMD and SEALANE_KEY_FILE are both set: which is it?");
  }
  if (is_hub_resource(options.key_file)) {
    return key_from_hub(options.key_file, options.key_hub, deadline);
  }
  return read_key_file(options.key_file, options.key_group);
}

PairKeys duplicate(const PairKeys& keys) {
  PairKeys out;
  for (const auto& key : keys.by_rank) {
    out.by_rank.push_back(key ? std::optional<Key>(key->duplicate()) : std::nullopt);
  }
  return out;
}

}  // namespace

Result<Key> parse_key(std::string_view text, const std::string& name) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::array<uint8_t, Key::kBytes> bytes{};
  bool good = text.size() == kDigits;
  for (size_t i = 0; good && i < kDigits; ++i) {
    const int value = digit_value(text[i]);
    good = value >= 0;
    bytes[i / 2] = static_cast<uint8_t>(bytes[i / 2] << 4 | (value & 15));
  }
  if (!good) {
    wipe(bytes);  // it may be most of a key
    return usage_error(concat(name, " is no key (one line of ", kDigits,
                              " hexadecimal digits); make one with: sealane keygen FILE"));
  }
  auto key = Key::from_bytes(bytes);
  wipe(bytes);
  return key;
}

Status write_key_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return io_error("cannot make the key file " + path, errno);
  SystemRandom random;
  const Key key = Key::random(random);
  std::string text = to_hex(key.secret());
  text += '\n';
  const bool written =
      write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      fsync(descriptor) == 0;
  const int error = errno;
  wipe({reinterpret_cast<uint8_t*>(text.data()), text.size()});
  close(descriptor);
  if (written) return {};
  unlink(path.c_str());
  return io_error("cannot write the key file " + path, error);
}

Result<Key> read_key_file(const std::string& path, const std::string& group) {
  if (path.empty()) {
    return usage_error(
        "no key given; make one with 'sealane keygen FILE', copy it to every host "
        "and set SEALANE_KEY_FILE=FILE");
  }
  auto text = read_private_file(path, true, group);
  if (!text && access(path.c_str(), F_OK) != 0) {
    return usage_error(concat(text.error().message, "; make it with: sealane keygen ", path,
                              ", and copy it to every host"));
  }
  if (!text) return text.error();
  auto key = parse_key(*text, path);
  wipe({reinterpret_cast<uint8_t*>(text->data()), text->size()});
  return key;
}

Result<Credentials> read_credentials(const JoinOptions& options) {
  if (options.key != nullptr) return Credentials(PresharedKey{options.key->duplicate()});
  if (options.pair_keys != nullptr) return Credentials(duplicate(*options.pair_keys));
  if (options.certificate_file.empty()) {
    SEALANE_LET(auto key, read_key(options));
    return Credentials(PresharedKey{std::move(key)});
  }
  if (options.private_key_file.empty() || options.authorities_file.empty()) {
    return usage_error(
        "a certificate needs its private key (SEALANE_CERT_KEY_FILE) and the "
        "authorities to trust (SEALANE_CA_FILE)");
  }
  Certificates certificates;
  auto certificate = read_private_file(options.certificate_file, false);
  auto private_key = read_private_file(options.private_key_file, true, options.key_group);
  auto authorities = read_private_file(options.authorities_file, false);
  const bool has_place = private_key && private_key->size() <= SecretPem::kBytesMax;
  if (private_key) {
    if (has_place) certificates.private_key = SecretPem(*private_key);
    wipe({reinterpret_cast<uint8_t*>(private_key->data()), private_key->size()});
  }
  for (const auto* file : {&certificate, &private_key, &authorities}) {
    if (!file->ok()) return file->error();
  }
  if (!has_place) return usage_error(options.private_key_file + " is too long for what it is");
  certificates.certificate = std::move(*certificate);
  certificates.authorities = std::move(*authorities);
  certificates.unix_seconds = time(nullptr);
  return Credentials(std::move(certificates));
}

}  // namespace sealane
