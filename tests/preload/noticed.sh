#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# noticed.sh PROGRAM...: does --verify notice that an answer was wrong, and was the program none the wiser?
said=$("$@" 2>&1)
code=$?
echo "$said"
[ $code -eq 0 ] && echo "$said" | grep -q "an answer differed from libcrypto's"
