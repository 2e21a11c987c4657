// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do operations begin in the order that all ranks agree on, and does none wait for itself? One
// thread plays them all: what would wait for ever is what has not begun when it is asked for.

#include "turns.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sealane::adapter {
namespace {

using Names = std::vector<std::string>;

class TurnsTest : public testing::Test {
 protected:
  using Action = std::function<void()>;

  struct Played {
    Turns::Pointer turn = std::make_shared<Turns::Turn>();
    Action continuation;
  };
  using Pointer = std::shared_ptr<Played>;

  // As launch() in process_group.cc; `ends` says that there is nothing to do but to end.
  Pointer call(const std::string& name, bool ends = false) {
    auto played = std::make_shared<Played>();
    turns_.add(played->turn, [this, name, played, ends] {
      begun_.push_back(name);
      if (ends) end(played);
    });
    return played;
  }

  // As TorchWork::getFuture() and what is hung on it.
  void hang(const Pointer& played, Action continuation) {
    turns_.await(played->turn);
    turns_.expect_continuation(played->turn);
    played->continuation = std::move(continuation);
  }

  // As TorchWork::end().
  void end(const Pointer& played) {
    turns_.end(played->turn);
    if (played->continuation) turns_.run_continuations(played->turn, played->continuation);
  }

  Turns turns_;
  Names begun_;
};

TEST_F(TurnsTest, WhatAContinuationCallsComesBeforeWhatTheProgramCalledNext) {
  const Pointer first = call("first");
  Pointer inner;
  hang(first, [&] { inner = call("inner"); });
  const Pointer next = call("next");
  EXPECT_EQ(begun_, (Names{"first"}));
  end(first);
  EXPECT_EQ(begun_, (Names{"first", "inner", "next"}));
  end(inner);
  end(next);
  turns_.wait_for_all();
}

TEST_F(TurnsTest, AContinuationThatWaitsForALaterOperationLetsItBegin) {
  const Pointer first = call("first");
  Pointer next;
  hang(first, [&] {
    turns_.await(next->turn);
    EXPECT_EQ(begun_, (Names{"first", "next"}));
  });
  next = call("next");
  end(first);
  end(next);
  turns_.wait_for_all();
}

// An empty gather, say, that was held back: it ends while others are made to begin, and what is
// hung on it waits for a collective of its own.
TEST_F(TurnsTest, WhatEndsAsItBeginsHoldsUpNobodyInItsContinuation) {
  const Pointer first = call("first");
  hang(first, [] {});
  const Pointer empty = call("empty", true);
  bool inner_begun = false;
  Pointer inner;
  hang(empty, [&] {
    inner = call("inner");
    inner_begun = begun_.back() == "inner";  // or nobody would ever begin it
    end(inner);
  });
  const Pointer next = call("next");
  end(first);
  EXPECT_TRUE(inner_begun);
  EXPECT_EQ(begun_, (Names{"first", "empty", "inner", "next"}));
  end(next);
  turns_.wait_for_all();
}

TEST_F(TurnsTest, ManyThatEndAsTheyBeginKeepTheirOrder) {
  const Pointer first = call("first");
  hang(first, [] {});
  std::vector<Pointer> inner(5);
  for (size_t i = 0; i < inner.size(); ++i) {
    const std::string name = std::to_string(i);
    const Pointer empty = call("empty " + name, true);
    hang(empty, [&inner, i, name, this] {
      inner[i] = call("inner " + name);
      end(inner[i]);
    });
  }
  end(first);
  EXPECT_EQ(begun_, (Names{"first", "empty 0", "inner 0", "empty 1", "inner 1", "empty 2",
                           "inner 2", "empty 3", "inner 3", "empty 4", "inner 4"}));
  turns_.wait_for_all();
}

}  // namespace
}  // namespace sealane::adapter
