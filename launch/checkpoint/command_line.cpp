// command_line.cpp -- options and help texts of `capstan checkpoint`.
#include "launch/checkpoint/command_line.hpp"

#include <string>
#include <utility>

namespace capstan::launch::checkpoint {
namespace {

constexpr const char* kCheckpointHelp =
    "a checkpoint (run/checkpoint-00000012), or a directory of checkpoints, of which the newest is used";

class Commands {
 public:
  Commands(CLI::App& app, Request& request)
      : request_(request),
        parent_(
            *app.add_subcommand("checkpoint", "inspect, convert and rewrite checkpoints; needs no cluster")) {
    all_.push_back(&parent_);
  }

  void add_list() {
    CLI::App& command =
        add("list", Verb::list, "list the checkpoints of a directory, including damaged and leftover ones");
    word(command, "DIR", request_.from, "the directory with the checkpoints of a run");
    command.add_flag("--verify", request_.verify, "read every byte and verify the checksums");
  }

  void add_show() {
    CLI::App& command = add("show", Verb::show,
                            "print variables, slots, norms, step, user state and settings of a checkpoint");
    word(command, "CHECKPOINT", request_.from, kCheckpointHelp);
    command
        .add_flag("--norms,!--no-norms", request_.norms,
                  "print L2 norm, minimum, maximum, and counts of NaN and infinities; reads all data")
        ->default_str("on");
  }

  void add_verify() {
    CLI::App& command =
        add("verify", Verb::verify, "verify every byte and report damage; exit code 5 if there is any");
    word(command, "CHECKPOINT|DIR|MODEL", request_.from,
         "a checkpoint, a directory of checkpoints, or an exported model");
  }

  void add_diff() {
    CLI::App& command =
        add("diff", Verb::diff, "compare two checkpoints; exit code 0 if equal, 1 if different, 2 on errors");
    word(command, "A", request_.from, kCheckpointHelp);
    word(command, "B", request_.to, "the checkpoint to compare with");
    command.add_flag("--slots,!--no-slots", request_.compare_slots, "compare optimizer slots, too")
        ->default_str("on");
  }

  void add_export() {
    CLI::App& command =
        add("export", Verb::export_file, "write variables to one file, for serving, numpy or Keras");
    word(command, "CHECKPOINT", request_.from, kCheckpointHelp);
    word(command, "OUT", request_.to, "the output file");
    command
        .add_option("--format", request_.format,
                    "model: HDF5 for capstan::Model; npy: one variable; npz: all; keras: HDF5 for "
                    "load_weights(by_name=True)")
        ->default_str("by suffix: .h5 and .hdf5 model, .npy, .npz")
        ->type_name("model|npy|npz|keras");
    command.add_option("--variable", request_.variables, "export only this variable; repeatable")
        ->default_str("all")
        ->allow_extra_args(false)
        ->type_name("NAME");
    command.add_flag("--slots", request_.slots, "export optimizer slots, too (model and npz)");
    add_force(command);
  }

  void add_import() {
    CLI::App& command =
        add("import", Verb::import_file, "make a checkpoint of one variable from a .npy or HDF5 file");
    word(command, "FILE", request_.from, "a .npy or HDF5 file");
    word(command, "OUT_DIR", request_.to, "the output directory for checkpoints; created if missing");
    command.add_option("--variable", request_.variables, "name of the variable")
        ->required()
        ->expected(1)
        ->type_name("NAME");
    command.add_option("--dataset", request_.dataset, "dataset of the HDF5 file")
        ->default_str("the only dataset of the file")
        ->type_name("PATH");
    command
        .add_option("--optimizer", request_.optimizer,
                    "optimizer of the program that will restore the variable; adds its initial slots")
        ->default_str("sgd")
        ->type_name("sgd|momentum|adagrad|rmsprop|adam|adamw|ftrl");
    command
        .add_option("--initial-accumulator", request_.initial_accumulator,
                    "initial accumulator of Adagrad and FTRL")
        ->default_str("0.1")
        ->type_name("X");
    command.add_option("--step", request_.step, "step of the checkpoint")->default_str("0")->type_name("N");
    add_force(command);
  }

  void add_reshard() {
    CLI::App& command = add("reshard", Verb::reshard, "rewrite a checkpoint with another number of parts");
    word(command, "CHECKPOINT", request_.from, kCheckpointHelp);
    word(command, "OUT_DIR", request_.to, "the output directory for checkpoints; created if missing");
    command
        .add_option("--parts", request_.parts,
                    "number of parts; fastest to restore if equal to the number of ps")
        ->required()
        ->type_name("N");
    add_force(command);
  }

  void add_compact() {
    CLI::App& command = add("compact", Verb::compact, "merge an increment with its base, in place");
    word(command, "CHECKPOINT", request_.from, kCheckpointHelp);
  }

  std::vector<CLI::App*> take() { return std::move(all_); }

 private:
  CLI::App& add(const std::string& name, Verb verb, const std::string& what) {
    CLI::App& command = *parent_.add_subcommand(name, what);
    command.add_flag("--json", request_.json, "print JSON");
    command.parse_complete_callback([request = &request_, verb] { request->verb = verb; });
    all_.push_back(&command);
    return command;
  }
  static void word(CLI::App& command, const std::string& name, std::string& to, const std::string& help) {
    command.add_option(name, to, help)->required();
  }
  void add_force(CLI::App& command) {
    command.add_flag("--force", request_.force, "replace existing output");
  }

  Request& request_;
  CLI::App& parent_;
  std::vector<CLI::App*> all_;
};

}  // namespace

std::vector<CLI::App*> add_commands(CLI::App& app, Request& request) {
  Commands commands(app, request);
  commands.add_list();
  commands.add_show();
  commands.add_verify();
  commands.add_diff();
  commands.add_export();
  commands.add_import();
  commands.add_reshard();
  commands.add_compact();
  return commands.take();
}

std::string verbs() { return "list, show, verify, diff, export, import, reshard and compact"; }

}  // namespace capstan::launch::checkpoint
