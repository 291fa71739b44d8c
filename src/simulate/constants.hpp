// constants.hpp -- the measured times that the model of the protocol uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capstan::simulate {

/// Times in seconds, of one thread. constant_table() has the source of each default; read_constants()
/// replaces them by results of benchmarks.
struct Constants {
  double closure = 0.4e-6;       ///< coordinator: dispatch of a closure and receipt of its result
  double check_member = 1.4e-9;  ///< coordinator: check of a member's last heartbeat
  double step = 0.4e-6;          ///< worker: a closure, besides its rows
  double lookup_row = 38e-9;     ///< worker: lookup of a row of 64 floats in mapped memory
  double push_row = 50e-9;       ///< worker: push of a row of 64 floats
  double apply = 0.4e-6;         ///< ps: a push, besides its rows
  double apply_row = 49e-9;      ///< ps: update of a row of 64 floats by SGD
  double serve_row = 38e-9;      ///< ps: row of 64 floats that is sent by messages
  double poll_ring = 1.4e-9;     ///< ps: poll of the ring of a worker
  double message = 3e-6;         ///< either end: a message between hosts, at most kMessageBytes long
  double connection = 0.5e-3;    ///< either end: setup of a connection
  double member_bytes = 430;     ///< bytes of a member in the table of members
  double poll_time = 200e-6;     ///< time for which a thread polls before it sleeps
  double poll_slice = 8e-6;      ///< time for which a thread polls before it yields its core
  double wake_up = 50e-6;        ///< shortest wake-up of a thread that sleeps
  double wake_up_spread = 0;     ///< mean of the exponential part of a wake-up
  double timer = 85e-6;          ///< excess of a sleep over its length, for a paced step

  /// Time of `rows` rows of `dim` floats, whose constant is for 64 floats. The time grows with the bytes, as
  /// measured for 16 to 256 floats.
  static double of_rows(double row_of_64_floats, double rows, double dim) {
    return rows * row_of_64_floats * dim / 64;
  }
};

/// Longest message: longer ones are sent in pieces (transport::kPieceBytes).
constexpr double kMessageBytes = 60 * 1024;

/// A constant, for tables and files.
struct ConstantField {
  std::string_view name;
  double Constants::*value;
  std::string_view unit;
  std::string_view source;
};

/// Returns all constants in the order of their declaration.
const std::vector<ConstantField>& constant_table();

/// Replaces the constants that a text in JSON has: the report of a benchmark (its "results"), a file of
/// perf/run, which holds several reports, or an object of names and values. Of perf/run, results between two
/// hosts are left out. Rates of several workers are divided by their number. Returns the names of the
/// replaced constants. Throws Error(invalid_argument) for text that is none of these, for reports without a
/// result that determines a constant, for an unknown name, and for a value that is not a number of at least
/// 0.
std::vector<std::string_view> read_constants(Constants& constants, std::string_view json);

/// Replaces the constants that a file has, as read_constants() does. Throws Error, which names the file:
/// not_found, or that of read_constants().
std::vector<std::string_view> read_constants_file(Constants& constants, const std::string& path);

}  // namespace capstan::simulate
