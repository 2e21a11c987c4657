// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Whose context does a call concern? The driver answers for no stream of a context that has failed,
// and for no event at all, so those that the program makes are noted. What is not known belongs to
// the calling thread's context. Looked up only when a context has failed.
//
// Thread-safe. Fails by not knowing: there was no memory to note it.
#pragma once

#include "port.h"

namespace sealane::preload {

// A stream or event, made just now in the calling thread's context.
void note_object(const void* object) noexcept;
void forget_object(const void* object);
void forget_objects_of(serve::ContextHandle context);

// What a call names: a stream, an event, a context, or nothing of that.
class Concern {
 public:
  Concern() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a stream is what most calls name
  Concern(serve::StreamHandle stream) : stream_(stream) {}
  static Concern event(CUevent event) {
    Concern made;
    made.event_ = event;
    return made;
  }
  static Concern context(CUcontext context) {
    Concern made;
    made.context_ = context;
    return made;
  }
  serve::StreamHandle stream() const { return stream_; }
  serve::ContextHandle whose() const;  // nullptr: nobody's

 private:
  serve::StreamHandle stream_ = nullptr;
  CUevent event_ = nullptr;
  CUcontext context_ = nullptr;
};

}  // namespace sealane::preload
