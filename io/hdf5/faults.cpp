// faults.cpp -- runs the checks of CheckpointReader one by one and continues after a failed check.
#include "io/hdf5/faults.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

class Findings {
 public:
  /// Runs `check`; records a fault and returns false if it throws Error(data_loss).
  template <class Check>
  bool passes(const std::string& file, const std::string& dataset, const Check& check) {
    try {
      check();
      return true;
    } catch (const Error& error) {
      if (error.code() != Code::data_loss) throw;
      faults_.push_back({file, dataset, error.what()});
      return false;
    }
  }
  bool none() const noexcept { return faults_.empty(); }
  void add(Fault fault) { faults_.push_back(std::move(fault)); }
  std::vector<Fault> take() { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
};

void find_in_part(Findings& findings, const fs::path& directory, const PartReport& part,
                  const ProgressCallback& progress) {
  const fs::path file = directory / part.file;
  // The offsets are meaningless if the size differs.
  if (!findings.passes(part.file, "", [&] { check_hdf5_file(file, part.bytes); })) return;
  findings.passes(part.file, "", [&] { check_part(file, part); });
  const FileDescriptor from = open_to_read(file);
  for (const DatasetReport& dataset : part.datasets) {
    const std::string path = dataset_path(dataset.variable, dataset.component);
    findings.passes(part.file, path, [&] {
      check_dataset(from, file, dataset.offset, data_bytes(dataset), dataset.xxh3, path, progress);
    });
  }
}

void find_in_base(Findings& findings, const fs::path& directory, const Base& base,
                  const ProgressCallback& progress) {
  fs::path base_path;
  if (!findings.passes(kManifestFile, "", [&] { base_path = find_base(directory, base); })) return;
  for (Fault& fault : find_faults(base_path, progress)) {
    fault.file = fmt::format("../{}/{}", base.checkpoint, fault.file);
    findings.add(std::move(fault));
  }
}

}  // namespace

std::vector<Fault> find_faults(const fs::path& directory, const ProgressCallback& progress) {
  std::error_code error;
  if (!fs::exists(directory, error)) {
    throw Error(Code::not_found, fmt::format("no checkpoint at {}", directory.string()));
  }
  Findings findings;
  Manifest manifest;
  if (!findings.passes(kManifestFile, "", [&] { manifest = read_manifest(directory); }))
    return findings.take();
  findings.passes(kMasterFile, "", [&] {
    check_master(directory / kMasterFile, manifest.master_bytes, manifest.master_xxh3);
  });
  for (const PartReport& part : manifest.parts) find_in_part(findings, directory, part, progress);
  if (manifest.base) find_in_base(findings, directory, *manifest.base, progress);
  if (manifest.base && findings.none())
    findings.passes(kManifestFile, "", [&] { CheckpointReader reader(directory); });
  return findings.take();
}

}  // namespace capstan::io
