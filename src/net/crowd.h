// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who stands before the listeners of this process and is not through its greeting yet. There is
// room for kMax, whatever the number of listeners: descriptors and memory are the whole program's.
// Who comes when it is full takes the place of the one who has been silent for longest, so that a
// crowd that says nothing keeps nobody out who does.
//
// Concurrency: the crew's first worker alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>

namespace sealane::net {

class Crowd {
 public:
  static constexpr size_t kMax = 256;

  class Member {
   public:
    virtual void hang_up() = 0;  // and leave soon

   protected:
    ~Member() = default;
  };

  // False: everybody has said for which listener he is.
  bool make_room() {
    if (all_ < kMax) return true;
    if (silent_.empty()) return false;
    Member* const oldest = silent_.front();
    leave(oldest);
    oldest->hang_up();
    return true;
  }
  void enter(Member* member) {
    ++all_;
    silent_.push_back(member);
  }
  void speaks(Member* member) { std::erase(silent_, member); }
  void leave(Member* member) {
    --all_;
    std::erase(silent_, member);
  }

 private:
  size_t all_ = 0;
  std::deque<Member*> silent_;  // the oldest first
};

}  // namespace sealane::net
