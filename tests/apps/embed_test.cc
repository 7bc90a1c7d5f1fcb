// The declarations are those of C, also where C++ includes them.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/apps/embedded.h"

int main(int argc, char** argv) {
  std::ifstream file(argc == 2 ? argv[1] : "", std::ios::binary);
  const std::string program((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string array(reinterpret_cast<const char*>(embedded_program), embedded_program_size);
  if (program.empty() || program != array) {
    std::printf("The array is not the program: %zu and %zu bytes.\n", array.size(), program.size());
    return 1;
  }
  return reinterpret_cast<std::uintptr_t>(embedded_program) % 64 == 0 ? 0 : 1;
}
