// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// The module sealane._torch.

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include <string>
#include <utility>
#include <vector>

#include "process_group.h"
#include "sealane/version.h"

namespace sealane::adapter {
namespace {

Mode mode_of(const std::string& name) {
  if (name == "sealed") return Mode::sealed;
  if (name == "plain") return Mode::plain;
  throw pybind11::value_error("mode is 'sealed' or 'plain', not '" + name + "'");
}

Transport transport_of(const std::string& name) {
  if (name == "auto") return Transport::automatic;
  if (name == "shm") return Transport::shm;
  if (name == "tcp") return Transport::tcp;
  throw pybind11::value_error("transport is 'auto', 'shm' or 'tcp', not '" + name + "'");
}

}  // namespace

PYBIND11_MODULE(_torch, module) {
  namespace py = pybind11;
  py::module_::import("torch.distributed");  // registers the base class
  module.doc() = "The process group behind sealane.torch; use that module.";
  module.attr("version") = std::string(sealane::version());
  module.attr("torch_version") = SEALANE_TORCH_VERSION;

  py::class_<CommOptions>(module, "CommOptions")
      .def(py::init())
      .def_readwrite("rank", &CommOptions::rank)
      .def_readwrite("size", &CommOptions::size)
      .def_readwrite("group", &CommOptions::group)
      .def_readwrite("algorithm", &CommOptions::algorithm)
      .def_readwrite("timeout", &CommOptions::timeout)
      .def_readwrite("key_file", &CommOptions::key_file)
      .def_readwrite("certificate_file", &CommOptions::certificate_file)
      .def_readwrite("certificate_key_file", &CommOptions::certificate_key_file)
      .def_readwrite("authorities_file", &CommOptions::authorities_file)
      .def_readwrite("attest_command", &CommOptions::attest_command)
      .def("set_mode",
           [](CommOptions& self, const std::string& name) { self.mode = mode_of(name); })
      .def("set_transport",
           [](CommOptions& self, const std::string& name) { self.transport = transport_of(name); });

  py::class_<ProcessGroupSealane, c10::intrusive_ptr<ProcessGroupSealane>, BackendBase>(
      module, "ProcessGroupSealane")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, const CommOptions& options,
                       const std::vector<int>& world_ranks, const ProcessGroupSealane* parent,
                       bool store_is_older) {
             return c10::make_intrusive<ProcessGroupSealane>(store, options, world_ranks, parent,
                                                             store_is_older);
           }),
           py::arg("store"), py::arg("options"), py::arg("world_ranks"), py::arg("parent"),
           py::arg("store_is_older") = false, py::call_guard<py::gil_scoped_release>())
      // Who is not in a part has nothing to do with it.
      .def("perform_nocolor_split", [](ProcessGroupSealane&, const py::object&) {})
      // PyTorch 1.13 has no name for it.
      .def("abort", &ProcessGroupSealane::abort_all, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("sealed", &ProcessGroupSealane::sealed)
      .def_property_readonly("traffic", [](const ProcessGroupSealane& self) {
        const CommTraffic traffic = [&] {
          // Who ends the group meanwhile waits for continuations, which need Python's lock.
          const py::gil_scoped_release release;
          return self.traffic();
        }();
        return std::pair(traffic.records, traffic.bytes);
      });
}

}  // namespace sealane::adapter
