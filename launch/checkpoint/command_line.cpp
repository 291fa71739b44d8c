// command_line.cpp -- options and help of `capstan checkpoint`.
#include "launch/checkpoint/command_line.hpp"

#include <string>
#include <utility>

namespace capstan::launch::checkpoint {
namespace {

constexpr const char* kCheckpointHelp =
    "a checkpoint (run/checkpoint-00000012), or the folder of all of them: then the newest";

class Commands {
 public:
  Commands(CLI::App& app, Request& request)
      : request_(request),
        parent_(*app.add_subcommand("checkpoint",
                                    "look at checkpoints and turn them into other files; needs no cluster")) {
    parent_.footer("Example:\n  capstan checkpoint list run/checkpoints\n\ndocs/checkpoints.md has more.\n");
    all_.push_back(&parent_);
  }

  void add_list() {
    CLI::App& command =
        add("list", Verb::list, "every checkpoint of a folder, with what is damaged or left over",
            "list run/checkpoints --verify");
    word(command, "DIR", request_.from, "the folder of all checkpoints of a run");
    command.add_flag("--verify", request_.verify, "read every byte of each");
  }

  void add_show() {
    CLI::App& command =
        add("show", Verb::show, "variables, slots, norms, step, user state and settings of a checkpoint",
            "show run/checkpoints");
    word(command, "CHECKPOINT", request_.from, kCheckpointHelp);
    command.add_flag("--norms,!--no-norms", request_.norms,
                     "L2 norm, minimum, maximum, NaN and infinities; reads everything [on]");
  }

  void add_verify() {
    CLI::App& command =
        add("verify", Verb::verify, "read every byte and name what is damaged; exit code 5 if something is",
            "verify run/checkpoints/checkpoint-00000012");
    word(command, "CHECKPOINT|DIR|MODEL", request_.from,
         "a checkpoint, a folder with several, or an exported model");
  }

  void add_diff() {
    CLI::App& command =
        add("diff", Verb::diff,
            "where two checkpoints differ; exit code 0 if nowhere, 1 if somewhere, 2 on trouble",
            "diff before/checkpoint-00000012 after/checkpoint-00000012");
    word(command, "A", request_.from, kCheckpointHelp);
    word(command, "B", request_.to, "the other");
    command.add_flag("--slots,!--no-slots", request_.compare_slots, "compare optimizer slots too [on]");
  }

  void add_export() {
    CLI::App& command =
        add("export", Verb::export_file, "one file with whole variables: for serving, numpy or Keras",
            "export run/checkpoints model.h5");
    word(command, "CHECKPOINT", request_.from, kCheckpointHelp);
    word(command, "OUT", request_.to, "the file to write");
    command
        .add_option(
            "--format", request_.format,
            "model: HDF5 that capstan::Model opens [.h5, .hdf5]; npy: one variable [.npy]; npz: all [.npz]; "
            "keras: HDF5 weights for load_weights(..., by_name=True)")
        ->type_name("model|npy|npz|keras");
    command.add_option("--variable", request_.variables, "this variable alone; may be given several times")
        ->allow_extra_args(false)
        ->type_name("NAME");
    command.add_flag("--slots", request_.slots, "optimizer slots too (model and npz)");
    add_force(command);
  }

  void add_import() {
    CLI::App& command =
        add("import", Verb::import_file, "a checkpoint of one variable from a file of numpy or HDF5",
            "import glove.npy pretrained --variable entities/embedding");
    word(command, "FILE", request_.from, "a .npy file, or HDF5");
    word(command, "OUT_DIR", request_.to, "the folder of checkpoints to write to; made if it is not there");
    command.add_option("--variable", request_.variables, "the name that the variable gets")
        ->required()
        ->expected(1)
        ->type_name("NAME");
    command.add_option("--dataset", request_.dataset, "which one of an HDF5 file [the only one]")
        ->type_name("PATH");
    command
        .add_option("--optimizer", request_.optimizer,
                    "whose slots, with their first values, the variable gets, since a program restores it "
                    "with the same ones "
                    "[sgd, which has none]")
        ->type_name("sgd|momentum|adagrad|rmsprop|adam|adamw|ftrl");
    command.add_option("--initial-accumulator", request_.initial_accumulator, "of Adagrad and FTRL [0.1]")
        ->type_name("X");
    command.add_option("--step", request_.step, "the checkpoint's step [0]")->type_name("N");
    add_force(command);
  }

  void add_reshard() {
    CLI::App& command = add("reshard", Verb::reshard, "the same checkpoint in another number of parts",
                            "reshard run/checkpoints resharded --parts 8");
    word(command, "CHECKPOINT", request_.from, kCheckpointHelp);
    word(command, "OUT_DIR", request_.to, "the folder of checkpoints to write to; made if it is not there");
    command.add_option("--parts", request_.parts, "as many as there will be ps reads fastest")
        ->required()
        ->type_name("N");
    add_force(command);
  }

  void add_compact() {
    CLI::App& command =
        add("compact", Verb::compact, "make an increment a whole checkpoint, which needs no other one",
            "compact run/checkpoints");
    word(command, "CHECKPOINT", request_.from, kCheckpointHelp);
  }

  std::vector<CLI::App*> take() { return std::move(all_); }

 private:
  CLI::App& add(const std::string& name, Verb verb, const std::string& what, const std::string& example) {
    CLI::App& command = *parent_.add_subcommand(name, what);
    command.footer("Example:\n  capstan checkpoint " + example + "\n");
    command.add_flag("--json", request_.json, "print JSON");
    command.parse_complete_callback([request = &request_, verb] { request->verb = verb; });
    all_.push_back(&command);
    return command;
  }
  static void word(CLI::App& command, const std::string& name, std::string& to, const std::string& help) {
    command.add_option(name, to, help)->required();
  }
  void add_force(CLI::App& command) { command.add_flag("--force", request_.force, "replace what is there"); }

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
