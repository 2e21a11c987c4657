// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Who connects to a rank that joins and is not known yet: says whether he wants a session or brings
// data, and proves himself or is dropped. There is room for some more than the group's ranks; to
// make room, those go who had time to prove themselves.
//
// A connection that fails before it has proved anything is anybody's, whatever rank it claims: it
// is dropped, and the reason kept. One of the group, or of this user on this host, is believed, and
// its failure ends the join.
//
// Concurrency: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "comm/control.h"
#include "comm/endpoint.h"
#include "core/session/session.h"

namespace sealane {

class Strangers {
 public:
  static constexpr uint8_t kControlHello = 'C';

  // Whoever lets them in.
  class Host {
   public:
    virtual Result<std::unique_ptr<Session>> make_session() = 0;  // with whoever it turns out to be
    virtual Status admit_session(uint32_t peer, std::unique_ptr<ControlLink> link) = 0;
    virtual void admit_data(Bytes hello, Socket socket) = 0;
    // At the rendezvous, too: then it is no stranger's attempt.
    virtual bool says_another_key(uint32_t peer) const = 0;

   protected:
    ~Host() = default;
  };

  Strangers(Host& host, uint32_t ranks) : host_(host), ranks_(ranks) {}

  void accept(const Listeners& listeners);
  Status hear();
  bool room() const;
  void add_interests(std::vector<Interest>& to) const;
  const std::string& refused() const { return refused_; }  // why the last one was; empty: none

 private:
  struct Stranger {
    Socket socket;
    std::vector<uint8_t> hello;
    std::unique_ptr<ControlLink> link;  // once he has asked for a session
    bool done = false;
    bool same_user = false;  // the kernel says so: who could also stop this process
    Instant since = SteadyClock().now();
  };

  Status hear_hello(Stranger& stranger);
  Status hear_session(Stranger& stranger);

  Host& host_;
  uint32_t ranks_;
  std::vector<Stranger> all_;
  std::string refused_;
};

}  // namespace sealane
