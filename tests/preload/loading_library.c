/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tells the program when its constructor and its destructor run. */
void loading_begins(void);
void loading_ends(void);
__attribute__((constructor)) static void begin(void) { loading_begins(); }
__attribute__((destructor)) static void end(void) { loading_ends(); }
