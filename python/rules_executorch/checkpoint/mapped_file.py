"""A file of a checkpoint, opened once, read-only, through a memory map."""

from __future__ import annotations

import mmap
import os
import stat

from rules_executorch.common.errors import UserError


class MappedFile:
    """The bytes of a file without reading them.

    The map is private and copy-on-write (`ACCESS_COPY`), so torch gets a writable buffer as it
    wants while the file, opened read-only, cannot change. Tensors keep the map alive.
    """

    def __init__(self, path: str) -> None:
        """Opens and maps `path`.

        Raises:
            UserError: the file is missing, not a regular file, or empty.
        """
        self.path = path
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise UserError(
                f"The weights file {path} does not exist.",
                instead="List it in `srcs` of the hf_model.",
            ) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UserError(
                    f"The weights file {path} is not a regular file.",
                    instead="Give the file itself in `srcs`, not a folder or a device.",
                )
            self.size = status.st_size
            if self.size == 0:
                raise UserError(
                    f"The weights file {path} is empty.",
                    instead="Fetch it again from the model's repository.",
                )
            self.buffer = mmap.mmap(descriptor, self.size, access=mmap.ACCESS_COPY)
        finally:
            os.close(descriptor)

    def read(self, start: int, length: int) -> bytes:
        """A copy of `length` bytes from `start`; fewer where the file ends."""
        return self.buffer[start : start + length]

    def release(self, start: int, length: int) -> None:
        """Gives back the memory of the pages that lie within a range.

        They are read from the file again when they are next used; what was written to them is
        lost.
        """
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (start + length) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            self.buffer.madvise(mmap.MADV_DONTNEED, first, last - first)
