// library_path.cpp -- asks the dynamic linker.
#include "base/library_path.hpp"

#include <dlfcn.h>
#include <link.h>

namespace capstan {

std::string library_path() {
  Dl_info info{};
  void* loaded = nullptr;
  const void* here = reinterpret_cast<const void*>(&library_path);
  if (dladdr1(here, &info, &loaded, RTLD_DL_LINKMAP) == 0 || loaded == nullptr) return {};
  return static_cast<const link_map*>(loaded)->l_name;
}

}  // namespace capstan
