/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * dlsym and dlopen look at who calls them (RTLD_NEXT, RPATH, namespaces), so our versions must not
 * call the real ones but become them: a jump, with the caller's return address in place. */
        .text

        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
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
        .size   dlsym, .-dlsym

        .globl  dlopen
        .type   dlopen, @function
dlopen:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        movq    8(%rsp), %rdx
        call    sealane_dlopen_flags
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        movl    %eax, %esi
        jmp     *sealane_real_dlopen(%rip)
        .cfi_endproc
        .size   dlopen, .-dlopen

        .section .note.GNU-stack,"",@progbits
