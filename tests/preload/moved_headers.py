#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Copies a library as patchelf leaves one: its program headers are at the end of the file, far
behind what is loaded, in a segment of their own.
  moved_headers.py LIBRARY COPY"""
import struct
import sys

PAGE = 4096
UNLOADED = 64 << 20  # bytes of the file, a hole
LOAD, HEADERS = 1, 6  # types of program headers
READABLE = 4
HEADER = struct.Struct('<IIQQQQQQ')  # type, flags, offset, address twice, bytes twice, alignment
TABLE_AT, COUNT_AT = 32, 56  # in the file's header


def up(value):
    return -(-value // PAGE) * PAGE


def moved(file, place):
    """The file with its headers' place changed, and the headers."""
    table, = struct.unpack_from('<Q', file, TABLE_AT)
    count, = struct.unpack_from('<H', file, COUNT_AT)
    headers = [HEADER.unpack_from(file, table + i * HEADER.size) for i in range(count)]
    loads = [i for i, header in enumerate(headers) if header[0] == LOAD]
    address = up(max(headers[i][3] + headers[i][6] for i in loads))
    size = (count + 1) * HEADER.size
    headers = [(HEADERS, READABLE, place, address, address, size, size, 8)
               if header[0] == HEADERS else header for header in headers]
    headers.insert(loads[-1] + 1, (LOAD, READABLE, place, address, address, size, size, PAGE))
    struct.pack_into('<Q', file, TABLE_AT, place)
    struct.pack_into('<H', file, COUNT_AT, count + 1)
    return file, b''.join(HEADER.pack(*header) for header in headers)


with open(sys.argv[1], 'rb') as library:
    content = bytearray(library.read())
end = up(len(content) + UNLOADED)
content, table = moved(content, end)
with open(sys.argv[2], 'wb') as copy:
    copy.write(content)
    copy.seek(end)
    copy.write(table)
