// The array has the bytes of the program that is named on the command line, and is aligned.
#include <stdint.h>
#include <stdio.h>

#include "tests/apps/embedded.h"

int main(int argc, char** argv) {
  FILE* file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL) {
    printf("usage: embed_test PROGRAM\n");
    return 1;
  }
  if ((uintptr_t)embedded_program % 64 != 0) {
    printf("The array is at %p, which is not aligned to 64 bytes.\n", (const void*)embedded_program);
    return 1;
  }
  if (sizeof(embedded_program) != embedded_program_size) {
    printf("The array has %zu bytes and says %zu.\n", sizeof(embedded_program), embedded_program_size);
    return 1;
  }
  size_t count = 0;
  for (int byte = fgetc(file); byte != EOF; byte = fgetc(file), ++count) {
    if (count >= embedded_program_size || embedded_program[count] != byte) {
      printf("The array differs from the program at byte %zu.\n", count);
      return 1;
    }
  }
  fclose(file);
  if (count != embedded_program_size) {
    printf("The program has %zu bytes and the array %zu.\n", count, embedded_program_size);
    return 1;
  }
  return 0;
}
