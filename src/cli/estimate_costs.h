// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// What work costs when cores and GPUs have a price, and how many cores each GPU of a host needs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>

#include "cli/estimate_report.h"
#include "estimate/ddp.h"
#include "estimate/fleet.h"
#include "estimate/price.h"
#include "estimate/serving.h"

namespace sealane::cli {

// How many units of work a price is for, by the unit of throughput; rows are priced for as many.
double priced_units(std::string_view throughput);

// A core counts as long as it is busy sealing.
std::string price_text(const EstimateSubject& subject, const estimate::Prices& prices,
                       std::span<const estimate::ServingRow> rows);
nlohmann::json price_json(const EstimateSubject& subject, const estimate::Prices& prices,
                          std::span<const estimate::ServingRow> rows);

// The cores of 'sealane' count all the time, in every machine.
std::string ddp_price_text(const estimate::Prices& prices, const estimate::DdpOptions& options,
                           std::span<const estimate::DdpRow> rows);
nlohmann::json ddp_price_json(const estimate::Prices& prices, const estimate::DdpOptions& options,
                              std::span<const estimate::DdpRow> rows);

std::string fleet_text(const estimate::Fleet& fleet, const Platform& platform);
nlohmann::json fleet_json(const estimate::Fleet& fleet);

}  // namespace sealane::cli
