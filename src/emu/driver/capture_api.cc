// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Stream capture: while a stream captures, what is submitted to it becomes nodes of a graph.
// Another stream joins by waiting for an event recorded in the capture, and must be waited for in
// turn before the capture ends. All state is guarded by Driver::capture_mutex.

#include <algorithm>

#include "emu/driver/graph.h"
#include "emu/driver/thread_state.h"

namespace sealane::emu {
namespace {

std::atomic<uint64_t> captures_made{0};

GraphNode* add_node(Graph& graph, CUgraphNodeType type, Operation operation,
                    std::vector<GraphNode*> after) {
  auto node = std::make_unique<GraphNode>();
  node->type = type;
  node->operation = std::move(operation);
  for (GraphNode* before : after) before->has_successor = true;
  node->after = std::move(after);
  const std::lock_guard lock(graph.mutex);
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

CUgraphNodeType type_of(const Operation& operation) {
  if (std::holds_alternative<CopyOperation>(operation)) return CU_GRAPH_NODE_TYPE_MEMCPY;
  if (std::holds_alternative<FillOperation>(operation)) return CU_GRAPH_NODE_TYPE_MEMSET;
  if (std::holds_alternative<HostOperation>(operation)) return CU_GRAPH_NODE_TYPE_HOST;
  if (std::holds_alternative<LaunchOperation>(operation)) return CU_GRAPH_NODE_TYPE_KERNEL;
  if (std::holds_alternative<AllocOperation>(operation)) return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  if (std::holds_alternative<FreeOperation>(operation)) return CU_GRAPH_NODE_TYPE_MEM_FREE;
  return CU_GRAPH_NODE_TYPE_EMPTY;
}

// A stream outside waits for an event of a capture: it joins. Inside: one more predecessor.
CUresult capture_await(StreamObject& stream, EventObject& event) {
  if (!event.capture || event.capture->origin == nullptr) {
    // Waiting inside a capture for something outside it would tie the graph to this moment.
    if (stream.capture) stream.capture->broken = true;
    return stream.capture ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_NOT_READY;
  }
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.capture->streams.push_back(&stream);
    stream.capture_tail = event.capture_tail;
    return CUDA_SUCCESS;
  }
  if (stream.capture != event.capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  for (GraphNode* node : event.capture_tail) {
    node->has_successor = true;
    auto& tail = stream.capture_tail;
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  return CUDA_SUCCESS;
}

// Events that were recorded in it keep it: from now on it has no origin, and nobody joins it.
void end(Driver& d, Capture& capture) {
  for (StreamObject* stream : capture.streams) {
    stream->capture = nullptr;
    stream->capture_tail.clear();
  }
  capture.streams.clear();
  capture.origin = nullptr;
  d.captures -= 1;
}

// Nobody gets its graph, unless it was the program's before.
void give_up_graph(Driver& d, const Capture& capture) {
  if (!capture.begun_by_program) d.graphs.remove(reinterpret_cast<CUgraph>(capture.graph.get()));
}

void leave(Capture& capture, StreamObject& stream) {
  std::erase(capture.streams, &stream);
  capture.left.insert(capture.left.end(), stream.capture_tail.begin(), stream.capture_tail.end());
  stream.capture = nullptr;
  stream.capture_tail.clear();
}

bool are_waited_for(const std::vector<GraphNode*>& tail) {
  return std::all_of(tail.begin(), tail.end(),
                     [](const GraphNode* node) { return node->has_successor; });
}

bool all_joined(const Capture& capture) {
  const auto joined = [&](const StreamObject* s) {
    return s == capture.origin || are_waited_for(s->capture_tail);
  };
  return are_waited_for(capture.left) &&
         std::all_of(capture.streams.begin(), capture.streams.end(), joined);
}

}  // namespace

bool leave_capture(Driver& d, StreamObject& stream) {
  const std::lock_guard lock(d.capture_mutex);
  const auto capture = stream.capture;
  if (!capture) return true;
  if (capture->origin == &stream) return false;
  leave(*capture, stream);
  return true;
}

void leave_captures(Driver& d, const Context& context) {
  const std::lock_guard lock(d.capture_mutex);
  for (const auto& stream : d.streams.all()) {
    const auto capture = stream->capture;
    if (!capture || stream->context.get() != &context) continue;
    if (capture->origin == stream.get()) {
      end(d, *capture);
      give_up_graph(d, *capture);
    } else {
      leave(*capture, *stream);
    }
  }
}

void forget_captured(Driver& d, const GraphNode* node) {
  for (const auto& event : d.events.all()) std::erase(event->capture_tail, node);
  for (const auto& stream : d.streams.all()) {
    std::erase(stream->capture_tail, node);
    if (stream->capture) std::erase(stream->capture->left, node);
  }
}

CUresult capture_operation(Driver& d, ResolvedStream& stream, Operation& operation) {
  const std::lock_guard lock(d.capture_mutex);
  const bool capturing = stream.object && stream.object->capture;
  if (const auto* await = std::get_if<AwaitOperation>(&operation); await && stream.object) {
    return capture_await(*stream.object, *await->event);
  }
  if (!capturing) {
    if (auto* record = std::get_if<RecordOperation>(&operation)) record->event->capture = nullptr;
    return CUDA_ERROR_NOT_READY;
  }
  StreamObject& object = *stream.object;
  if (object.capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (auto* record = std::get_if<RecordOperation>(&operation)) {
    record->event->capture = object.capture;
    record->event->capture_tail = object.capture_tail;
    return CUDA_SUCCESS;
  }
  const CUgraphNodeType type = type_of(operation);
  object.capture_tail = {
      add_node(*object.capture->graph, type, std::move(operation), object.capture_tail)};
  return CUDA_SUCCESS;
}

CUresult allow_synchronising(Driver& d, const ResolvedStream* stream) {
  if (d.captures.load() == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(d.capture_mutex);
  if (stream != nullptr && stream->object && stream->object->capture) {
    stream->object->capture->broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  const ThreadState& me = thread_state();
  if (me.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (const auto& object : d.streams.all()) {
    Capture* capture = object->capture.get();
    if (capture == nullptr || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool mine = capture->thread == &me;
    if (!mine && capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) continue;
    if (!mine && me.capture_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) continue;
    capture->broken = true;
    const bool implicit = stream != nullptr && stream->stream == stream->context->legacy();
    return implicit ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

namespace {

// The nodes of a list, if all of them are of the graph.
bool read_nodes(Graph& graph, const CUgraphNode* list, size_t count, std::vector<GraphNode*>& out) {
  if (count > 0 && list == nullptr) return false;
  const std::lock_guard lock(graph.mutex);
  for (size_t i = 0; i < count; ++i) {
    if (!owns(graph, node_of(list[i]))) return false;
    out.push_back(node_of(list[i]));
  }
  return true;
}

// `into`: a graph of the program's to go on with, behind some of its nodes; nullptr: a new one.
CUresult begin_capture(CUstream handle, DefaultStream mode, CUstreamCaptureMode capture_mode,
                       CUgraph into = nullptr, const CUgraphNode* after = nullptr,
                       size_t count = 0) {
  return on_stream(handle, mode, [&](Driver& d, ResolvedStream& s) {
    if (capture_mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    const auto existing = d.graphs.find(into);
    std::vector<GraphNode*> tail;
    if (into != nullptr && (!existing || !read_nodes(*existing, after, count, tail))) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!s.object) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const std::lock_guard lock(d.capture_mutex);
    if (s.object->capture) return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    capture->origin = s.object.get();
    capture->mode = capture_mode;
    capture->thread = &thread_state();
    capture->id = ++captures_made;
    capture->streams = {s.object.get()};
    capture->begun_by_program = existing != nullptr;
    if (existing) capture->graph = existing;
    d.graphs.add(capture->graph);  // a program may add nodes while it captures
    s.object->capture = std::move(capture);
    s.object->capture_tail = std::move(tail);
    d.captures += 1;
    return CUDA_SUCCESS;
  });
}

CUresult end_capture(CUstream handle, DefaultStream mode, CUgraph* out) {
  return on_stream(handle, mode, [&](Driver& d, ResolvedStream& s) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = nullptr;
    const std::lock_guard lock(d.capture_mutex);
    const auto capture = s.object ? s.object->capture : nullptr;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != s.object.get()) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    const bool wrong_thread =
        capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &thread_state();
    if (wrong_thread) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    const bool joined = all_joined(*capture);
    end(d, *capture);
    if (capture->broken || !joined) {
      give_up_graph(d, *capture);
      return capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                             : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    *out = reinterpret_cast<CUgraph>(capture->graph.get());
    return CUDA_SUCCESS;
  });
}

// What the next node of a capturing stream follows: these nodes too, or these alone.
CUresult update_tail(CUstream handle, DefaultStream mode, const CUgraphNode* nodes, size_t count,
                     unsigned flags) {
  return on_stream(handle, mode, [&](Driver& d, ResolvedStream& s) {
    constexpr unsigned kSet = 1;
    if (flags > kSet) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(d.capture_mutex);
    const auto capture = s.object ? s.object->capture : nullptr;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::vector<GraphNode*> given;
    if (!read_nodes(*capture->graph, nodes, count, given)) return CUDA_ERROR_INVALID_VALUE;
    auto& tail = s.object->capture_tail;
    if (flags == kSet) tail.clear();
    for (GraphNode* node : given) {
      if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
    }
    return CUDA_SUCCESS;
  });
}

CUresult capture_info(CUstream handle, DefaultStream mode, CUstreamCaptureStatus* status,
                      cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies,
                      size_t* count) {
  return on_stream(handle, mode, [&](Driver& d, ResolvedStream& s) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(d.capture_mutex);
    const auto capture = s.object ? s.object->capture : nullptr;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!capture) return CUDA_SUCCESS;
    *status =
        capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(capture->graph.get());
    if (dependencies != nullptr) {
      *dependencies = reinterpret_cast<CUgraphNode*>(s.object->capture_tail.data());
    }
    if (count != nullptr) *count = s.object->capture_tail.size();
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace sealane::emu

using namespace sealane::emu;

EMU_TWINS(cuStreamBeginCapture, _ptsz, (CUstream stream),
          begin_capture(stream, mode, CU_STREAM_CAPTURE_MODE_GLOBAL))
EMU_TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode capture_mode),
          begin_capture(stream, mode, capture_mode))
EMU_TWINS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph* graph),
          end_capture(stream, mode, graph))
EMU_TWINS(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus* status),
          capture_info(stream, mode, status, nullptr, nullptr, nullptr, nullptr))
EMU_TWINS(cuStreamGetCaptureInfo, _ptsz,
          (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id),
          capture_info(stream, mode, status, id, nullptr, nullptr, nullptr))
EMU_TWINS(cuStreamGetCaptureInfo_v2, _ptsz,
          (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
           const CUgraphNode** dependencies, size_t* count),
          capture_info(stream, mode, status, id, graph, dependencies, count))
EMU_TWINS(cuStreamGetCaptureInfo_v3, _ptsz,
          (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
           const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count),
          (edges != nullptr ? * edges = nullptr : nullptr,
           capture_info(stream, mode, status, id, graph, dependencies, count)))

EMU_TWINS(cuStreamBeginCaptureToGraph, _ptsz,
          (CUstream stream, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges,
           size_t count, CUstreamCaptureMode capture_mode),
          (static_cast<void>(edges),
           graph == nullptr ? CUDA_ERROR_INVALID_VALUE
                            : begin_capture(stream, mode, capture_mode, graph, after, count)))
EMU_TWINS(cuStreamUpdateCaptureDependencies, _ptsz,
          (CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags),
          update_tail(stream, mode, nodes, count, flags))
EMU_TWINS(cuStreamUpdateCaptureDependencies_v2, _ptsz,
          (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count,
           unsigned flags),
          (static_cast<void>(edges), update_tail(stream, mode, nodes, count, flags)))

EMU_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_state().capture_mode);
  return CUDA_SUCCESS;
}
