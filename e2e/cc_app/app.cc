// Feeds token ids to the program and prints the id with the largest logit, which would come next.
// The program's weights are in it, or in a data file beside it (`external_data = True`).

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

using executorch::aten::ScalarType;
using executorch::extension::from_blob;
using executorch::extension::Module;

namespace {

// Where the program lies when Bazel runs the app, and when a person runs the binary.
std::string Runfile(const char* binary, const std::string& path) {
  const char* folder = std::getenv("RUNFILES_DIR");
  return (folder ? folder : std::string(binary) + ".runfiles") + "/_main/" + path;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int64_t> ids;
  for (int i = 1; i < argc; ++i) ids.push_back(std::atoll(argv[i]));
  if (ids.empty()) {
    std::cerr << "usage: app TOKEN...\n";
    return 2;
  }
  // Mapped: the weights are read from the files as they are needed.
  const std::string data = Runfile(argv[0], "assistant/model.ptd");
  std::vector<std::string> data_files;
  if (std::ifstream(data).good()) data_files.push_back(data);
  Module module(
      Runfile(argv[0], "assistant/model.pte"), std::move(data_files), Module::LoadMode::Mmap);

  const int length = static_cast<int>(ids.size());
  std::vector<int64_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  auto input = from_blob(ids.data(), {1, length}, ScalarType::Long);
  auto cache_position = from_blob(positions.data(), {length}, ScalarType::Long);

  const auto result = module.forward({input, cache_position});
  if (!result.ok()) {
    std::cerr << "The program did not run: error " << static_cast<int>(result.error()) << ".\n";
    return 1;
  }
  // (batch, 1, vocabulary): the logits of the last position.
  const auto logits = result->at(0).toTensor();
  const float* first = logits.const_data_ptr<float>();
  const float* largest = std::max_element(first, first + logits.numel());
  std::cout << "argmax " << largest - first << " of " << logits.numel() << "\n";
  return 0;
}
