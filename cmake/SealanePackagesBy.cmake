# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Read by CPack once per kind of package: what is built for Debian's Python is of no use elsewhere.
if(CPACK_GENERATOR STREQUAL "RPM")
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL python)
endif()
