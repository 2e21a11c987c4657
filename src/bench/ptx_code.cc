// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// fma_loop, matrix_product and copy_vectors of tests/ptx/kernels.cu, as nvcc made them.

#include "bench/ptx_code.h"

namespace sealane::bench {

const char* const kBenchPtx = R"ptx(.version 9.0
.target sm_80
.address_size 64
.visible .entry fma_loop(
 .param .u64 fma_loop_param_0,
 .param .u32 fma_loop_param_1
)
{
 .reg .pred %p<3>;
 .reg .f32 %f<47>;
 .reg .b32 %r<10>;
 .reg .b64 %rd<5>;
 ld.param.u64 %rd1, [fma_loop_param_0];
 ld.param.u32 %r4, [fma_loop_param_1];
 mov.u32 %r1, %tid.x;
 cvt.rn.f32.u32 %f46, %r1;
 setp.lt.s32 %p1, %r4, 1;
 mov.f32 %f45, 0f3E800000;
 @%p1 bra $L__BB22_3;
 mov.f32 %f45, 0f3E800000;
 mov.u32 %r9, 0;
$L__BB22_2:
 .pragma "nounroll";
 mov.f32 %f10, 0f3F000000;
 mov.f32 %f11, 0f3F800347;
 fma.rn.f32 %f12, %f46, %f11, %f10;
 fma.rn.f32 %f13, %f45, %f11, %f12;
 fma.rn.f32 %f14, %f12, %f11, %f10;
 fma.rn.f32 %f15, %f13, %f11, %f14;
 fma.rn.f32 %f16, %f14, %f11, %f10;
 fma.rn.f32 %f17, %f15, %f11, %f16;
 fma.rn.f32 %f18, %f16, %f11, %f10;
 fma.rn.f32 %f19, %f17, %f11, %f18;
 fma.rn.f32 %f20, %f18, %f11, %f10;
 fma.rn.f32 %f21, %f19, %f11, %f20;
 fma.rn.f32 %f22, %f20, %f11, %f10;
 fma.rn.f32 %f23, %f21, %f11, %f22;
 fma.rn.f32 %f24, %f22, %f11, %f10;
 fma.rn.f32 %f25, %f23, %f11, %f24;
 fma.rn.f32 %f26, %f24, %f11, %f10;
 fma.rn.f32 %f27, %f25, %f11, %f26;
 fma.rn.f32 %f28, %f26, %f11, %f10;
 fma.rn.f32 %f29, %f27, %f11, %f28;
 fma.rn.f32 %f30, %f28, %f11, %f10;
 fma.rn.f32 %f31, %f29, %f11, %f30;
 fma.rn.f32 %f32, %f30, %f11, %f10;
 fma.rn.f32 %f33, %f31, %f11, %f32;
 fma.rn.f32 %f34, %f32, %f11, %f10;
 fma.rn.f32 %f35, %f33, %f11, %f34;
 fma.rn.f32 %f36, %f34, %f11, %f10;
 fma.rn.f32 %f37, %f35, %f11, %f36;
 fma.rn.f32 %f38, %f36, %f11, %f10;
 fma.rn.f32 %f39, %f37, %f11, %f38;
 fma.rn.f32 %f40, %f38, %f11, %f10;
 fma.rn.f32 %f41, %f39, %f11, %f40;
 fma.rn.f32 %f46, %f40, %f11, %f10;
 fma.rn.f32 %f45, %f41, %f11, %f46;
 add.s32 %r9, %r9, 1;
 setp.lt.s32 %p2, %r9, %r4;
 @%p2 bra $L__BB22_2;
$L__BB22_3:
 mov.u32 %r6, %ntid.x;
 mov.u32 %r7, %ctaid.x;
 mad.lo.s32 %r8, %r7, %r6, %r1;
 cvta.to.global.u64 %rd2, %rd1;
 mul.wide.u32 %rd3, %r8, 4;
 add.s64 %rd4, %rd2, %rd3;
 add.f32 %f42, %f45, %f46;
 st.global.f32 [%rd4], %f42;
 ret;
}
.visible .entry matrix_product(
 .param .u64 matrix_product_param_0,
 .param .u64 matrix_product_param_1,
 .param .u64 matrix_product_param_2,
 .param .u32 matrix_product_param_3
)
{
 .reg .pred %p<3>;
 .reg .f32 %f<57>;
 .reg .b32 %r<35>;
 .reg .b64 %rd<13>;
 // demoted variable
 .shared .align 4 .b8 _ZZ14matrix_productE2ta[1024];
 // demoted variable
 .shared .align 4 .b8 _ZZ14matrix_productE2tb[1024];
 ld.param.u64 %rd3, [matrix_product_param_0];
 ld.param.u64 %rd4, [matrix_product_param_1];
 ld.param.u64 %rd5, [matrix_product_param_2];
 ld.param.u32 %r18, [matrix_product_param_3];
 mov.u32 %r19, %ctaid.y;
 shl.b32 %r20, %r19, 4;
 mov.u32 %r1, %tid.y;
 add.s32 %r21, %r20, %r1;
 mov.u32 %r22, %ctaid.x;
 shl.b32 %r2, %r22, 4;
 mov.u32 %r3, %tid.x;
 mul.lo.s32 %r4, %r21, %r18;
 setp.lt.s32 %p1, %r18, 1;
 mov.f32 %f56, 0f00000000;
 @%p1 bra $L__BB7_3;
 shl.b32 %r24, %r1, 6;
 mov.u32 %r25, _ZZ14matrix_productE2ta;
 add.s32 %r7, %r25, %r24;
 shl.b32 %r26, %r3, 2;
 add.s32 %r5, %r7, %r26;
 mov.u32 %r27, _ZZ14matrix_productE2tb;
 add.s32 %r28, %r27, %r24;
 add.s32 %r6, %r28, %r26;
 add.s32 %r8, %r27, %r26;
 mad.lo.s32 %r29, %r1, %r18, %r3;
 add.s32 %r33, %r29, %r2;
 shl.b32 %r10, %r18, 4;
 add.s32 %r32, %r3, %r4;
 cvta.to.global.u64 %rd1, %rd3;
 cvta.to.global.u64 %rd2, %rd4;
 mov.f32 %f56, 0f00000000;
 mov.u32 %r34, 0;
$L__BB7_2:
 mul.wide.u32 %rd6, %r32, 4;
 add.s64 %rd7, %rd1, %rd6;
 ld.global.f32 %f6, [%rd7];
 st.shared.f32 [%r5], %f6;
 mul.wide.u32 %rd8, %r33, 4;
 add.s64 %rd9, %rd2, %rd8;
 ld.global.f32 %f7, [%rd9];
 st.shared.f32 [%r6], %f7;
 bar.sync 0;
 ld.shared.f32 %f8, [%r8];
 ld.shared.f32 %f9, [%r7];
 fma.rn.f32 %f10, %f9, %f8, %f56;
 ld.shared.f32 %f11, [%r8+64];
 ld.shared.f32 %f12, [%r7+4];
 fma.rn.f32 %f13, %f12, %f11, %f10;
 ld.shared.f32 %f14, [%r8+128];
 ld.shared.f32 %f15, [%r7+8];
 fma.rn.f32 %f16, %f15, %f14, %f13;
 ld.shared.f32 %f17, [%r8+192];
 ld.shared.f32 %f18, [%r7+12];
 fma.rn.f32 %f19, %f18, %f17, %f16;
 ld.shared.f32 %f20, [%r8+256];
 ld.shared.f32 %f21, [%r7+16];
 fma.rn.f32 %f22, %f21, %f20, %f19;
 ld.shared.f32 %f23, [%r8+320];
 ld.shared.f32 %f24, [%r7+20];
 fma.rn.f32 %f25, %f24, %f23, %f22;
 ld.shared.f32 %f26, [%r8+384];
 ld.shared.f32 %f27, [%r7+24];
 fma.rn.f32 %f28, %f27, %f26, %f25;
 ld.shared.f32 %f29, [%r8+448];
 ld.shared.f32 %f30, [%r7+28];
 fma.rn.f32 %f31, %f30, %f29, %f28;
 ld.shared.f32 %f32, [%r8+512];
 ld.shared.f32 %f33, [%r7+32];
 fma.rn.f32 %f34, %f33, %f32, %f31;
 ld.shared.f32 %f35, [%r8+576];
 ld.shared.f32 %f36, [%r7+36];
 fma.rn.f32 %f37, %f36, %f35, %f34;
 ld.shared.f32 %f38, [%r8+640];
 ld.shared.f32 %f39, [%r7+40];
 fma.rn.f32 %f40, %f39, %f38, %f37;
 ld.shared.f32 %f41, [%r8+704];
 ld.shared.f32 %f42, [%r7+44];
 fma.rn.f32 %f43, %f42, %f41, %f40;
 ld.shared.f32 %f44, [%r8+768];
 ld.shared.f32 %f45, [%r7+48];
 fma.rn.f32 %f46, %f45, %f44, %f43;
 ld.shared.f32 %f47, [%r8+832];
 ld.shared.f32 %f48, [%r7+52];
 fma.rn.f32 %f49, %f48, %f47, %f46;
 ld.shared.f32 %f50, [%r8+896];
 ld.shared.f32 %f51, [%r7+56];
 fma.rn.f32 %f52, %f51, %f50, %f49;
 ld.shared.f32 %f53, [%r8+960];
 ld.shared.f32 %f54, [%r7+60];
 fma.rn.f32 %f56, %f54, %f53, %f52;
 bar.sync 0;
 add.s32 %r33, %r33, %r10;
 add.s32 %r32, %r32, 16;
 add.s32 %r34, %r34, 16;
 setp.lt.s32 %p2, %r34, %r18;
 @%p2 bra $L__BB7_2;
$L__BB7_3:
 add.s32 %r30, %r2, %r3;
 add.s32 %r31, %r4, %r30;
 cvta.to.global.u64 %rd10, %rd5;
 mul.wide.s32 %rd11, %r31, 4;
 add.s64 %rd12, %rd10, %rd11;
 st.global.f32 [%rd12], %f56;
 ret;
}
.visible .entry copy_vectors(
 .param .u64 copy_vectors_param_0,
 .param .u64 copy_vectors_param_1,
 .param .u32 copy_vectors_param_2
)
{
 .reg .pred %p<6>;
 .reg .b32 %r<69>;
 .reg .b64 %rd<25>;
 ld.param.u64 %rd11, [copy_vectors_param_0];
 ld.param.u64 %rd12, [copy_vectors_param_1];
 ld.param.u32 %r12, [copy_vectors_param_2];
 cvta.to.global.u64 %rd1, %rd11;
 cvta.to.global.u64 %rd2, %rd12;
 mov.u32 %r13, %ntid.x;
 mov.u32 %r14, %nctaid.x;
 mul.lo.s32 %r1, %r14, %r13;
 mov.u32 %r15, %ctaid.x;
 mov.u32 %r16, %tid.x;
 mad.lo.s32 %r67, %r15, %r13, %r16;
 setp.ge.s32 %p1, %r67, %r12;
 @%p1 bra $L__BB23_7;
 add.s32 %r17, %r1, %r12;
 add.s32 %r18, %r67, %r1;
 not.b32 %r19, %r18;
 add.s32 %r20, %r17, %r19;
 div.u32 %r3, %r20, %r1;
 add.s32 %r21, %r3, 1;
 and.b32 %r66, %r21, 3;
 setp.eq.s32 %p2, %r66, 0;
 @%p2 bra $L__BB23_4;
 mul.wide.s32 %rd13, %r67, 16;
 add.s64 %rd24, %rd2, %rd13;
 mul.wide.s32 %rd4, %r1, 16;
 add.s64 %rd23, %rd1, %rd13;
$L__BB23_3:
 .pragma "nounroll";
 ld.global.v4.u32 {%r22, %r23, %r24, %r25}, [%rd24];
 st.global.v4.u32 [%rd23], {%r22, %r23, %r24, %r25};
 add.s32 %r67, %r67, %r1;
 add.s64 %rd24, %rd24, %rd4;
 add.s64 %rd23, %rd23, %rd4;
 add.s32 %r66, %r66, -1;
 setp.ne.s32 %p3, %r66, 0;
 @%p3 bra $L__BB23_3;
$L__BB23_4:
 setp.lt.u32 %p4, %r3, 3;
 @%p4 bra $L__BB23_7;
 mul.wide.s32 %rd10, %r1, 16;
$L__BB23_6:
 .pragma "nounroll";
 mul.wide.s32 %rd14, %r67, 16;
 add.s64 %rd15, %rd1, %rd14;
 add.s64 %rd16, %rd2, %rd14;
 ld.global.v4.u32 {%r30, %r31, %r32, %r33}, [%rd16];
 st.global.v4.u32 [%rd15], {%r30, %r31, %r32, %r33};
 add.s64 %rd17, %rd16, %rd10;
 ld.global.v4.u32 {%r38, %r39, %r40, %r41}, [%rd17];
 add.s64 %rd18, %rd15, %rd10;
 st.global.v4.u32 [%rd18], {%r38, %r39, %r40, %r41};
 add.s32 %r46, %r67, %r1;
 add.s32 %r47, %r46, %r1;
 add.s64 %rd19, %rd17, %rd10;
 ld.global.v4.u32 {%r48, %r49, %r50, %r51}, [%rd19];
 add.s64 %rd20, %rd18, %rd10;
 st.global.v4.u32 [%rd20], {%r48, %r49, %r50, %r51};
 add.s32 %r56, %r47, %r1;
 add.s64 %rd21, %rd19, %rd10;
 ld.global.v4.u32 {%r57, %r58, %r59, %r60}, [%rd21];
 add.s64 %rd22, %rd20, %rd10;
 st.global.v4.u32 [%rd22], {%r57, %r58, %r59, %r60};
 add.s32 %r67, %r56, %r1;
 setp.lt.s32 %p5, %r67, %r12;
 @%p5 bra $L__BB23_6;
$L__BB23_7:
 ret;
}
)ptx";

}  // namespace sealane::bench
