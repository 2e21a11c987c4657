// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is every kind of file written as output_file.h says, and none destroyed? (What users see of it:
// tests/cli/outputs_test.cc.)

#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/exchange_for_tests.h"

namespace sealane {
namespace {

namespace fs = std::filesystem;

class OutputFile : public testing::Test {
 protected:
  OutputFile() {
    std::string name = (fs::temp_directory_path() / "output-file-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) directory_ = name;
  }
  ~OutputFile() override { fs::remove_all(directory_); }

  std::string file(const std::string& name) const { return (directory_ / name).string(); }
  static std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool can_exchange_names() const { return test::can_exchange_names(directory_); }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  fs::path directory_;
};

TEST_F(OutputFile, IsReplacedWhole) {
  EXPECT_EQ(write_output(file("a"), "a long first text"), 0);
  EXPECT_EQ(write_output(file("a"), "short"), 0);
  EXPECT_EQ(contents(file("a")), "short");
  EXPECT_EQ(files(), 1u);
}

// Who may not read what was there may not read what comes, not even while it is written.
TEST_F(OutputFile, IsAsPrivateAsBeforeFromItsFirstByte) {
  std::ofstream(file("a")) << "private";
  ASSERT_EQ(chmod(file("a").c_str(), 0600), 0);
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(watch, directory_.c_str(), IN_ATTRIB | IN_MODIFY), 0);
  EXPECT_EQ(write_output(file("a"), "more of it"), 0);
  alignas(inotify_event) std::array<char, 4096> events{};
  ASSERT_GE(read(watch, events.data(), events.size()), static_cast<ssize_t>(sizeof(inotify_event)));
  close(watch);
  EXPECT_EQ(reinterpret_cast<const inotify_event*>(events.data())->mask, uint32_t{IN_ATTRIB});
  EXPECT_EQ(fs::status(file("a")).permissions(), fs::perms(0600));
}

TEST_F(OutputFile, ThatFailsLeavesWhatWasThere) {
  EXPECT_EQ(write_output("", "x"), ENOENT);
  EXPECT_EQ(write_output(file("no/such"), "x"), ENOENT);
  EXPECT_EQ(write_output(directory_.string(), "x"), EISDIR);
  EXPECT_EQ(check_output(directory_.string()), EISDIR);
  EXPECT_EQ(write_output("/dev/full", "x"), ENOSPC);
  EXPECT_EQ(files(), 0u);
}

TEST_F(OutputFile, IsCheckedWithoutATrace) {
  EXPECT_EQ(check_output(file("a")), 0);
  EXPECT_EQ(files(), 0u);
  std::ofstream(file("a")) << "kept";
  EXPECT_EQ(check_output(file("a")), 0);
  EXPECT_EQ(contents(file("a")), "kept");
  EXPECT_EQ(check_output("/dev/null"), 0);
  EXPECT_EQ(check_output("/dev/stdout"), 0);
}

// What cannot be opened for writing is not to be replaced behind its owner's back.
TEST_F(OutputFile, ThatMayNotBeWrittenToIsNotReplaced) {
  std::ofstream(file("a")) << "kept";
  ASSERT_EQ(chmod(file("a").c_str(), 0444), 0);
  fs::permissions(directory_, fs::perms(0777));
  const bool root = geteuid() == 0;  // may write to everything
  if (root) {
    ASSERT_EQ(chown(file("a").c_str(), 65534, 65534), 0);
    ASSERT_EQ(seteuid(65534), 0);
  }
  const int found = check_output(file("a"));
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(found, EACCES);
}

TEST_F(OutputFile, IsNeverAProgramOrALibrary) {
  for (const std::string text : {"\177ELF and more", "#!/bin/sh\n"}) {
    std::ofstream(file("a")) << text;
    fs::remove(file("link"));
    fs::create_symlink("a", file("link"));
    for (const char* name : {"a", "link"}) {
      EXPECT_EQ(check_output(file(name)), ETXTBSY);
      EXPECT_EQ(write_output(file(name), "x"), ETXTBSY);
      OutputStream stream;
      EXPECT_EQ(stream.open(file(name)), ETXTBSY);
      remove_output(file(name));
      EXPECT_EQ(contents(file("a")), text);
    }
  }
}

TEST_F(OutputFile, BehindLinksIsFoundThroughAllOfThem) {
  fs::create_directory(file("d"));
  fs::create_symlink("d/two", file("one"));
  fs::create_symlink("../three", file("d/two"));
  EXPECT_EQ(write_output(file("one"), "text"), 0);
  EXPECT_EQ(contents(file("three")), "text");
  EXPECT_TRUE(fs::is_symlink(file("one")));
  EXPECT_TRUE(fs::is_symlink(file("d/two")));
  remove_output(file("one"));
  EXPECT_TRUE(fs::is_symlink(file("one")));
  EXPECT_FALSE(fs::exists(file("three")));
  fs::create_symlink("loop", file("loop"));
  EXPECT_EQ(write_output(file("loop"), "x"), ELOOP);
}

TEST_F(OutputFile, OfADescriptorGoesToThatDescriptor) {
  const int there = open(file("a").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(there, 0);
  ASSERT_EQ(write(there, "first ", 6), 6);
  const std::string number = std::to_string(there);
  EXPECT_EQ(write_output("/dev/fd/" + number, "second "), 0);
  EXPECT_EQ(write_output("/proc/self/fd/" + number, "third"), 0);
  close(there);
  EXPECT_EQ(contents(file("a")), "first second third");
  EXPECT_EQ(write_output("/dev/fd/" + number, "x"), EBADF);
}

TEST_F(OutputFile, APipeWithoutAReaderIsAnErrorAndNoSignal) {
  ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(write_output(file("pipe"), "x"), ENXIO);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write_descriptor(ends[1], "nobody reads this"), EPIPE);  // and we live
  close(ends[1]);
  sigset_t waiting;
  sigpending(&waiting);
  EXPECT_EQ(sigismember(&waiting, SIGPIPE), 0);
  remove_output(file("pipe"));
  EXPECT_TRUE(fs::is_fifo(file("pipe")));
}

TEST_F(OutputFile, IsTheSameByWhateverName) {
  std::ofstream(file("a")) << "x";
  fs::create_symlink("a", file("link"));
  fs::create_hard_link(file("a"), file("hard"));
  for (const char* name : {"a", "link", "hard", "./a"}) {
    EXPECT_TRUE(is_same_file(file("a"), file(name))) << name;
  }
  EXPECT_FALSE(is_same_file(file("a"), file("b")));
  EXPECT_TRUE(is_same_file(file("b"), file("./b")));  // neither exists
  EXPECT_FALSE(is_same_file(file("b"), file("c")));
  EXPECT_FALSE(is_same_file("/dev/null", "/dev/null"));  // takes any number of outputs
}

TEST_F(OutputFile, ThatGrowsIsWrittenInPlaceOrOnceInOrder) {
  OutputStream stream;
  ASSERT_EQ(stream.open(file("a")), 0);
  EXPECT_TRUE(stream.can_seek());
  EXPECT_EQ(stream.write_at("hello world", 0), 0);
  EXPECT_EQ(stream.write_at("W", 6), 0);
  EXPECT_EQ(contents(file("a")), "hello World");

  ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
  const int reader = open(file("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  OutputStream through;
  ASSERT_EQ(through.open(file("pipe")), 0);
  EXPECT_FALSE(through.can_seek());
  EXPECT_EQ(through.write_at("one", 0), 0);
  EXPECT_EQ(through.write_at("two", 3), 0);
  std::array<char, 16> text{};
  EXPECT_EQ(read(reader, text.data(), text.size()), 6);
  EXPECT_EQ(std::string(text.data()), "onetwo");
  close(reader);
}

TEST_F(OutputFile, OfTwoStreamsIsTheOneWrittenLast) {
  if (!can_exchange_names()) GTEST_SKIP() << "this file system exchanges no names";
  std::ofstream(file("a")) << "of an earlier run";
  ASSERT_EQ(chmod(file("a").c_str(), 0600), 0);
  OutputStream one;
  ASSERT_EQ(one.open(file("a")), 0);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(fs::status(file("a")).permissions(), fs::perms(0600));
  EXPECT_EQ(one.write_at("one and", 0), 0);
  {
    OutputStream other;
    ASSERT_EQ(other.open(file("a")), 0);
    EXPECT_EQ(other.write_at("other", 0), 0);
    EXPECT_EQ(contents(file("a")), "other");
    EXPECT_EQ(one.write_at(" more", 7), 0);
    EXPECT_EQ(contents(file("a")), "one and more");
    EXPECT_EQ(other.write_at(".", 5), 0);
    EXPECT_EQ(contents(file("a")), "other.");
  }
  EXPECT_EQ(one.write_at("!", 12), 0);
  EXPECT_EQ(contents(file("a")), "one and more!");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFile, ThatItsOwnerMovedAwayIsNotBroughtBack) {
  OutputStream stream;
  ASSERT_EQ(stream.open(file("a")), 0);
  fs::rename(file("a"), file("a.1"));
  std::ofstream(file("a")) << "somebody's";
  EXPECT_EQ(stream.write_at("text", 0), 0);
  EXPECT_EQ(contents(file("a.1")), "text");
  EXPECT_EQ(contents(file("a")), "somebody's");
  const std::string dated = file("a.2026-11-19T03-49");  // as long as a name of ours, and none
  fs::rename(file("a.1"), dated);
  EXPECT_EQ(stream.write_at("TEXT", 0), 0);
  EXPECT_EQ(contents(dated), "TEXT");
  EXPECT_EQ(contents(file("a")), "somebody's");
}

// One run more with the same name, while the first one goes on.
TEST_F(OutputFile, ThatIsStillWrittenIsNotRemoved) {
  {
    OutputStream stream;
    ASSERT_EQ(stream.open(file("a")), 0);
    EXPECT_EQ(stream.write_at("text", 0), 0);
    remove_output(file("a"));
    EXPECT_EQ(contents(file("a")), "text");
  }
  remove_output(file("a"));
  EXPECT_EQ(files(), 0u);
}

TEST_F(OutputFile, OfStreamsThatBeginAtOnceIsThereForEachOfThem) {
  if (!can_exchange_names()) GTEST_SKIP() << "this file system exchanges no names";
  constexpr size_t kStreams = 8;
  for (int round = 0; round < 20; ++round) {
    std::vector<OutputStream> streams(kStreams);
    std::set<std::string> written;
    std::latch ready(kStreams);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kStreams; ++i) {
      const std::string text = "stream " + std::to_string(i);
      written.insert(text);
      threads.emplace_back([&ready, text, name = file("a"), stream = &streams[i]] {
        ready.arrive_and_wait();
        EXPECT_EQ(stream->open(name), 0);
        EXPECT_EQ(stream->write_at(text, 0), 0);
      });
    }
    threads.clear();
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      const std::string name = entry.path().filename();
      EXPECT_TRUE(name == "a" || (name.starts_with("a.") && name.size() == 18)) << name;
      found.insert(contents(entry.path()));
    }
    EXPECT_EQ(found, written) << "in round " << round;
    for (const auto& entry : fs::directory_iterator(directory_)) fs::remove(entry.path());
  }
}

}  // namespace
}  // namespace sealane
