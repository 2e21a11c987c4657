// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "net/worker.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace sealane::net {

Result<std::unique_ptr<Worker>> Worker::start(const char* name) {
  const ExitHold hold;
  if (!hold) return exiting_error();
  Socket epoll(epoll_create1(EPOLL_CLOEXEC));
  Socket bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll.valid() || !bell.valid()) return io_error("no descriptor for a worker", errno);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // every ring is an event: nobody has to read the bell
  event.data.ptr = nullptr;
  if (epoll_ctl(epoll.descriptor(), EPOLL_CTL_ADD, bell.descriptor(), &event) != 0) {
    return io_error("epoll refuses a worker's bell", errno);
  }
  std::unique_ptr<Worker> worker(new Worker(std::move(epoll), std::move(bell)));
  // The program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = 0;
  try {
    worker->thread_ = std::thread([w = worker.get()] { w->run(); });
    pthread_setname_np(worker->thread_.native_handle(), name);
  } catch (const std::system_error& error) {
    failed = error.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) return io_error("no thread for a worker", failed);
  return worker;
}

Worker::~Worker() { end(); }

void Worker::end() {
  if (!thread_.joinable()) return;
  post({Order::stop, nullptr});
  thread_.join();
}

std::optional<Error> unserved(const BornHere& born) {
  if (born.elsewhere()) return of_the_parent();
  if (process_exits()) return exiting_error();
  return std::nullopt;
}

void Worker::abandon() { thread_.detach(); }  // there is nothing to wait for

void Worker::add(std::shared_ptr<Served> served) { post({Order::add, std::move(served)}); }

void Worker::kick(const std::shared_ptr<Served>& served) {
  if (served->kicked_.exchange(true, std::memory_order_acq_rel)) return;  // it will be looked at
  post({Order::kick, served});
}

void Worker::remove(const std::shared_ptr<Served>& served) { post({Order::remove, served}); }

void Worker::post(Task task) {
  bool ring = false;
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ring = !std::exchange(rung_, true);
  }
  if (!ring) return;
  const uint64_t one = 1;
  static_cast<void>(!write(bell_.descriptor(), &one, sizeof one));
}

bool Worker::carry_out_tasks() {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
    rung_ = false;
  }
  for (Task& task : tasks) {
    Served* const served = task.served.get();
    switch (task.order) {
      case Order::stop:
        return false;
      case Order::add: {
        served_.emplace(served, task.served);
        if (served->deadline()) timed_.push_back(task.served);
        epoll_event event{};
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        event.data.ptr = served;
        if (epoll_ctl(epoll_.descriptor(), EPOLL_CTL_ADD, served->descriptor(), &event) != 0) {
          served->unwatched(io_error("the kernel watches no more connections", errno));
          drop(served);
          break;
        }
        serve(served);
        break;
      }
      case Order::kick:
        served->kicked_.store(false, std::memory_order_release);
        serve(served);
        break;
      case Order::remove:
        drop(served);
        break;
    }
  }
  return true;
}

void Worker::serve(Served* served) {
  if (served_.contains(served) && !served->serve()) drop(served);
}

void Worker::drop(Served* served) {
  const auto found = served_.find(served);
  if (found == served_.end()) return;
  epoll_ctl(epoll_.descriptor(), EPOLL_CTL_DEL, served->descriptor(), nullptr);
  const std::shared_ptr<Served> kept = std::move(found->second);
  std::erase(timed_, kept);
  served_.erase(found);
  kept->dropped();
}

int Worker::patience_ms() const {
  std::optional<Instant> first;
  for (const auto& served : timed_) {
    if (const auto at = served->deadline(); at && (!first || *at < *first)) first = at;
  }
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - SteadyClock().now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

void Worker::run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = epoll_wait(epoll_.descriptor(), events.data(), events.size(), patience_ms());
    if (count < 0 && errno != EINTR) return;
    const ExitHold hold(ExitHold::Thread::ours);
    if (!hold) return;
    for (int i = 0; i < count; ++i) {
      auto* const served = static_cast<Served*>(events[static_cast<size_t>(i)].data.ptr);
      // One that a neighbour's turn has dropped is not in the table any more; none: the bell.
      if (served != nullptr) serve(served);
    }
    if (!carry_out_tasks()) return;
    const std::vector<std::shared_ptr<Served>> timed = timed_;
    const Instant now = SteadyClock().now();
    for (const auto& served : timed) {
      if (const auto at = served->deadline(); at && *at <= now) serve(served.get());
    }
  }
}

}  // namespace sealane::net
