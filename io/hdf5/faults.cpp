// faults.cpp -- the checks of a reader, one by one, each allowed to fail.
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
  /// True when the check passes.
  template <class Check>
  bool try_to(const std::string& file, const std::string& dataset, const Check& check) {
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

void find_in_part(Findings& findings, const fs::path& folder, const PartReport& part, const BytesDone& done) {
  const fs::path file = folder / part.file;
  // Of a file of another size no offset means anything.
  if (!findings.try_to(part.file, "", [&] { check_hdf5_file(file, part.bytes); })) return;
  findings.try_to(part.file, "", [&] { check_part(file, part); });
  const FileDescriptor from = open_to_read(file);
  for (const DatasetReport& dataset : part.datasets) {
    const std::string path = dataset_path(dataset.variable, dataset.which);
    findings.try_to(part.file, path, [&] {
      check_dataset(from, file, dataset.offset, data_bytes(dataset), dataset.xxh3, path, done);
    });
  }
}

void find_in_base(Findings& findings, const fs::path& folder, const Base& base, const BytesDone& done) {
  fs::path there;
  if (!findings.try_to(kManifestFile, "", [&] { there = find_base(folder, base); })) return;
  for (Fault& fault : find_faults(there, done)) {
    fault.file = fmt::format("../{}/{}", base.checkpoint, fault.file);
    findings.add(std::move(fault));
  }
}

}  // namespace

std::vector<Fault> find_faults(const fs::path& folder, const BytesDone& done) {
  std::error_code error;
  if (!fs::exists(folder, error)) {
    throw Error(Code::not_found, fmt::format("no checkpoint at {}", folder.string()));
  }
  Findings findings;
  Manifest manifest;
  if (!findings.try_to(kManifestFile, "", [&] { manifest = read_manifest(folder); })) return findings.take();
  findings.try_to(kMasterFile, "",
                  [&] { check_master(folder / kMasterFile, manifest.master_bytes, manifest.master_xxh3); });
  for (const PartReport& part : manifest.parts) find_in_part(findings, folder, part, done);
  if (manifest.base) find_in_base(findings, folder, *manifest.base, done);
  if (manifest.base && findings.none())
    findings.try_to(kManifestFile, "", [&] { CheckpointReader reader(folder); });
  return findings.take();
}

}  // namespace capstan::io
