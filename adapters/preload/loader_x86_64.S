/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both under the two versions that programs know them by: before glibc 2.34 and since.
 *
 * dlsym and dlopen look at who calls them (RTLD_NEXT, RPATH, namespaces), so our versions must not
 * call the real ones but become them: a jump, with the caller's return address in place. Where it
 * makes no difference who calls dlopen, we do (sealane_opens). */
        .text

        .globl  sealane_dlsym, sealane_dlsym_old
        .type   sealane_dlsym, @function
        .type   sealane_dlsym_old, @function
        .symver sealane_dlsym, dlsym@@GLIBC_2.34
        .symver sealane_dlsym_old, dlsym@GLIBC_2.2.5
sealane_dlsym:
sealane_dlsym_old:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        leaq    16(%rsp), %rdi          /* the handle, which may be changed */
        movq    24(%rsp), %rdx          /* who calls */
        call    sealane_answer_dlsym
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jne     1f
        jmp     *sealane_real_dlsym(%rip)
1:      ret
        .cfi_endproc
        .size   sealane_dlsym, .-sealane_dlsym

        .globl  sealane_dlopen, sealane_dlopen_old
        .type   sealane_dlopen, @function
        .type   sealane_dlopen_old, @function
        .symver sealane_dlopen, dlopen@@GLIBC_2.34
        .symver sealane_dlopen_old, dlopen@GLIBC_2.2.5
sealane_dlopen:
sealane_dlopen_old:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rdx          /* who calls */
        call    sealane_opens
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testb   %al, %al
        jne     1f
        jmp     *sealane_next_dlopen(%rip)
1:      jmp     sealane_open_and_bind
        .cfi_endproc
        .size   sealane_dlopen, .-sealane_dlopen

        .section .note.GNU-stack,"",@progbits
