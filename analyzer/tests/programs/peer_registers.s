# Functions whose registers are known at their entry only, and debug information for them: p is a
# `struct node *` in rdi, q a `struct other *` in rsi, r a `long *` in rdx, each until `known`.
#
# struct node { long key; struct node *next; double real; int x, y; long table[4]; };
# struct other { int a; float w; struct other *peer; long z; };
# struct pair { struct node *first; long n; };
    .section .debug_abbrev, "", @progbits
.Labbrev:
    .uleb128 1                  # compile_unit: name, language, low_pc, high_pc
    .uleb128 0x11
    .byte 1
    .uleb128 0x03, 0x08, 0x13, 0x05, 0x11, 0x01, 0x12, 0x07, 0, 0
    .uleb128 2                  # subprogram: name, low_pc, high_pc
    .uleb128 0x2e
    .byte 1
    .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
    .uleb128 3                  # formal_parameter: name, type, location list
    .uleb128 0x05
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0x02, 0x17, 0, 0
    .uleb128 4                  # variable: name, type, location
    .uleb128 0x34
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0, 0
    .uleb128 5                  # structure: name, byte_size
    .uleb128 0x13
    .byte 1
    .uleb128 0x03, 0x08, 0x0b, 0x0b, 0, 0
    .uleb128 6                  # member: name, type, location
    .uleb128 0x0d
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b, 0, 0
    .uleb128 7                  # base_type: name, byte_size, encoding
    .uleb128 0x24
    .byte 0
    .uleb128 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0
    .uleb128 8                  # pointer: type, byte_size
    .uleb128 0x0f
    .byte 0
    .uleb128 0x49, 0x13, 0x0b, 0x0b, 0, 0
    .uleb128 9                  # array: type
    .uleb128 0x01
    .byte 1
    .uleb128 0x49, 0x13, 0, 0
    .uleb128 10                 # subrange: count
    .uleb128 0x21
    .byte 0
    .uleb128 0x37, 0x0b, 0, 0
    .uleb128 11                 # variable: name, type
    .uleb128 0x34
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0, 0
    .uleb128 0

    .macro base name, size, encoding
    .uleb128 7
    .asciz "\name"
    .byte \size, \encoding
    .endm
    .macro member name, type, offset
    .uleb128 6
    .asciz "\name"
    .long \type - .Linfo + 4
    .byte \offset
    .endm
    .macro structure name, size
    .uleb128 5
    .asciz "\name"
    .byte \size
    .endm
    .macro pointer type
    .uleb128 8
    .long \type - .Linfo + 4
    .byte 8
    .endm


    .section .debug_info, "", @progbits
    .long .Linfo_end - .Linfo
.Linfo:
    .value 4
    .long .Labbrev
    .byte 8
    .uleb128 1
    .asciz "peer_registers.c"
    .value 12                   # DW_LANG_C99
    .quad .Ltext
    .quad .Lend_text - .Ltext
.Llong:
    base "long", 8, 5
.Lint:
    base "int", 4, 5
.Lfloat:
    base "float", 4, 4
.Ldouble:
    base "double", 8, 4
.Lnode_pointer:
    pointer .Lnode
.Lother_pointer:
    pointer .Lother
.Llong_pointer:
    pointer .Llong
.Ltable:
    .uleb128 9
    .long .Llong - .Linfo + 4
    .uleb128 10
    .byte 4
    .uleb128 0
.Lnode:
    structure "node", 64
    member "key", .Llong, 0
    member "next", .Lnode_pointer, 8
    member "real", .Ldouble, 16
    member "x", .Lint, 24
    member "y", .Lint, 28
    member "table", .Ltable, 32
    .uleb128 0
.Lother:
    structure "other", 24
    member "a", .Lint, 0
    member "w", .Lfloat, 4
    member "peer", .Lother_pointer, 8
    member "z", .Llong, 16
    .uleb128 0
.Lpair:
    structure "pair", 16
    member "first", .Lnode_pointer, 0
    member "n", .Llong, 8
    .uleb128 0
.Lswapped:
    structure "swapped", 16
    member "n", .Llong, 0
    member "second", .Lnode_pointer, 8
    .uleb128 0
    .uleb128 4                  # the variable in data
    .asciz "placed"
    .long .Lother - .Linfo + 4
    .uleb128 9
    .byte 3
    .quad placed
.Lnowhere:
    .uleb128 11                 # a variable that is in no memory
    .asciz "nowhere_target"
    .long .Lnode - .Linfo + 4

    .section .debug_loc, "", @progbits
    .text
.Ltext:
    .macro begin name
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    .endm

    .macro save register
    push \register
    .cfi_adjust_cfa_offset 8
    .endm

    .macro restore register
    pop \register
    .cfi_adjust_cfa_offset -8
    .endm

    # Ends the function: entries for it and its parameters.
    .macro finish name
    .cfi_endproc
    .size \name, . - \name
.Lend_\name:
    .pushsection .debug_info
    .uleb128 2
    .asciz "\name"
    .quad \name
    .quad .Lend_\name - \name
    parameter p, .Lnode_pointer, \name
    parameter q, .Lother_pointer, \name
    parameter r, .Llong_pointer, \name
    .uleb128 0
    .popsection
    place p, \name, 0x55
    place q, \name, 0x54
    place r, \name, 0x51
    .endm

    .macro parameter name, type, function
    .uleb128 3
    .asciz "\name"
    .long \type - .Linfo + 4
    .long .Lplace_\name\()_\function
    .endm

    .macro place name, function, operation
    .pushsection .debug_loc
.Lplace_\name\()_\function:
    .quad \function - .Ltext
    .quad .Lknown_\function - .Ltext
    .value 1
    .byte \operation
    .quad 0, 0
    .popsection
    .endm

    .macro known name
.Lknown_\name:
    .endm

    # What p, copied to rax, is after an instruction that writes to rax in its own way.
    .macro kill name, code, more
    begin kill_\name
    mov %rdi, %rax
    known kill_\name
    \code
    \more
at_kill_\name:
    mov 16(%rax), %rcx
    ret
    finish kill_\name
    .endm

    # One access to what is behind a parameter.
    .macro touch name, code
    begin touch_\name
at_touch_\name:
    \code
    known touch_\name
    ret
    finish touch_\name
    .endm

    kill lea_static, "lea placed(%rip), %rax"
    kill cmov_unlike, "cmovz %rsi, %rax"
    kill pop_unknown, "save %r8", "restore %rax"
    kill pop_other, "save %rsi", "restore %rax"
    kill xchg_unknown, "xchg %rax, %r8"
    kill xchg_other, "xchg %rax, %rsi"
    kill xchg_memory, "xchg %rax, (%rsi)"
    kill zero, "xor %eax, %eax"
    kill constant, "mov $64, %eax"
    kill low_byte, "mov %r8b, %al"
    kill high_byte, "mov %cl, %ah"
    kill low_word, "mov %r8w, %ax"
    kill low_half, "mov %eax, %eax"
    kill narrow, "movzbl %r8b, %eax"
    kill multiply, "mul %r8"
    kill multiply_two, "imul %r8, %rax"
    kill identify, "cpuid"
    kill clock, "rdtsc"
    kill random, "rdrand %rax"
    kill load_string, "mov %rsi, %r9", "lodsq"
    kill translate, "xlatb"
    kill compare_exchange, "cmpxchg %rcx, (%rsi)"
    kill exchange_add, "xadd %rax, 16(%rsi)"
    kill scan, "bsf %r8, %rax"
    kill count, "popcnt %r8, %rax"
    kill from_vector, "movq %xmm0, %rax"
    kill extract, "pextrq $1, %xmm0, %rax"
    kill convert, "cvttsd2si %xmm0, %rax"
    kill set, "setc %al"
    kill flags, "lahf"
    kill negate, "neg %rax"
    kill invert, "not %rax"
    kill swap, "bswap %rax"
    kill shift, "shl $3, %rax"
    kill rotate, "rol $8, %rax"
    kill subtract, "sub %r8, %rax"
    kill borrow, "sbb %rax, %rax"
    kill extract_bits, "pext %r8, %r9, %rax"
    kill and_not, "andn %r8, %r9, %rax"
    kill call, "call *%r8"
    kill system, "syscall"
    kill mask_bits, "vmovmskpd %ymm0, %eax"

    # A choice of which one way is not known.
    begin meet_open
    mov %rdi, %rax
    known meet_open
    cmovz %r8, %rax
at_meet_open:
    mov 16(%rax), %rcx
    ret
    finish meet_open

    # Exchanges and pushes that move the type instead of losing it.
    begin moved
    mov %rdi, %rax
    known moved
    xchg %rax, %rsi
at_moved_by_exchange:
    mov 16(%rsi), %rcx
    save %rsi
    mov $0, %esi
    restore %r9
at_moved_by_stack:
    mov 28(%r9), %ecx
    cmovz %r9, %rsi
    mov %r9, %r10
    cmovz %r9, %r10
at_moved_by_choice:
    mov 8(%r10), %rcx
    ret
    finish moved

    # Ways that meet.
    begin meet_unlike
    mov %rdi, %rax
    known meet_unlike
    test %ecx, %ecx
    je 1f
    nop
    nop
    mov %rsi, %rax
1:
at_meet_unlike:
    mov 16(%rax), %rcx
    ret
    finish meet_unlike

    begin meet_alike
    mov %rdi, %rax
    known meet_alike
    test %ecx, %ecx
    je 1f
    xor %eax, %eax
    mov %rdi, %rax
1:
at_meet_alike:
    mov 16(%rax), %rcx
    ret
    finish meet_alike

    begin meet_apart
    mov %rdi, %rax
    known meet_apart
    test %ecx, %ecx
    je 1f
    lea 8(%rdi), %rax
1:
at_meet_apart:
    mov 16(%rax), %rcx
    ret
    finish meet_apart

    begin loop_unlike
    mov %rdi, %rax
    known loop_unlike
1:
at_loop_unlike:
    mov 16(%rax), %rcx
    mov %rsi, %rax
    test %rcx, %rcx
    jne 1b
    ret
    finish loop_unlike

    begin loop_open
    mov %rdi, %rax
    known loop_open
1:
at_loop_open:
    mov 16(%rax), %rcx
    mov %r8, %rax
    test %rcx, %rcx
    jne 1b
    ret
    finish loop_open

    begin loop_chase
    mov %rdi, %rax
    known loop_chase
1:
at_loop_chase:
    mov 8(%rax), %rax
    test %rax, %rax
    jne 1b
    ret
    finish loop_chase

    # Pointers that count, by whole elements and not.
    begin loop_elements
    mov %rdi, %rax
    known loop_elements
1:
at_loop_elements:
    mov 28(%rax), %ecx
    add $64, %rax
    cmp %rax, %r8
    jne 1b
    ret
    finish loop_elements

    begin loop_ahead
    mov %rdi, %rax
    known loop_ahead
1:  add $128, %rax
at_loop_ahead:
    mov -100(%rax), %ecx
at_loop_ahead_second:
    mov -36(%rax), %ecx
    cmp %rax, %r8
    jne 1b
    ret
    finish loop_ahead

    begin loop_strays
    mov %rdi, %rax
    known loop_strays
1:
at_loop_strays:
    mov 24(%rax), %ecx
    add $24, %rax
    cmp %rax, %r8
    jne 1b
    ret
    finish loop_strays

    # Operands.
    touch second_register, "add 24(%r8,%rdi,1), %ecx"
    touch float_to_double, "cvtss2sd 4(%rsi), %xmm0"
    touch int_to_double, "cvtsi2sdl 24(%rdi), %xmm0"
    touch long_to_double, "cvtsi2sdq (%rdi), %xmm0"
    touch double_to_long, "cvttsd2si 16(%rdi), %rcx"
    touch packed_add, "addpd 32(%rdi), %xmm0"
    touch packed_multiply, "mulpd 48(%rdi), %xmm0"
    touch wide_add, "vaddsd 16(%rdi), %xmm0, %xmm1"
    touch broadcast, "vbroadcastsd 16(%rdi), %ymm0"
    touch wide_store, "vmovups %ymm0, 32(%rdi)"
    touch widest_store, "vmovdqu64 %zmm17, (%rdi)"
    touch fused, "vfmadd231sd 16(%rdi), %xmm0, %xmm1"
    touch high_half, "movhpd 16(%rdi), %xmm0"
    touch inserted, "pinsrq $1, 8(%rdi), %xmm0"
    touch big_endian, "movbe (%rdi), %rcx"
    touch checksum, "crc32q (%rdi), %rcx"
    touch counted, "popcntq (%rdi), %rcx"
    touch extracted, "bextr %r8, (%rdi), %rcx"
    touch exchanged, "cmpxchg %rcx, (%rdi)"
    touch locked, "lock xaddq %rcx, (%rdi)"
    touch pair_exchanged, "lock cmpxchg16b (%rdi)"
    touch old_load, "fldl 16(%rdi)"
    touch old_store, "fistpll (%rdi)"
    touch called, "call *8(%rdi)"
    touch jumped, "jmp *8(%rdi)"
    touch pushed, "pushq 8(%rdi)"
    touch string_store, "rep stosq"
    touch narrow_address, "movl 24(%edi), %ecx"
    touch narrow_long, "movq 16(%esi), %rcx"
    touch gathered, "vpgatherqq %ymm2, (%rdx,%ymm1,8), %ymm0"
    touch gathered_widely, "vpgatherqq (%rdx,%zmm1,8), %zmm0{%k1}"
    touch scattered, "vpscatterqq %zmm0, (%rdx,%zmm1,8){%k1}"
    touch gathered_member, "vpgatherqq %ymm2, 8(%rdi,%ymm1,8), %ymm0"
    touch compared, "cmpq $3, 8(%rdi)"

    # Places that debug information computes.
    .macro finish_placed name, variable, type, length, expression:vararg
    .cfi_endproc
    .size \name, . - \name
.Lend_\name:
    .pushsection .debug_info
    .uleb128 2
    .asciz "\name"
    .quad \name
    .quad .Lend_\name - \name
    .uleb128 4
    .asciz "\variable"
    .long \type - .Linfo + 4
    .uleb128 .Lexpression_end_\name - .Lexpression_\name
.Lexpression_\name:
    .byte \expression
.Lexpression_end_\name:
    # A value converted, one that is nowhere, a pointer to what is in no memory: all of no use here.
    .uleb128 4
    .asciz "converted"
    .long .Llong - .Linfo + 4
    .uleb128 .Lconverted_end_\name - .Lconverted_\name
.Lconverted_\name:
    .byte 0x78, 0               # breg8 0
    .byte 0xa8                  # convert
    .uleb128 .Lint - .Linfo + 4
    .byte 0x9f                  # stack_value
.Lconverted_end_\name:
    .uleb128 4
    .asciz "implied"
    .long .Lnode_pointer - .Linfo + 4
    .uleb128 10
    .byte 0x9e, 8               # implicit_value
    .quad 0
    .uleb128 4
    .asciz "nowhere"
    .long .Lnode_pointer - .Linfo + 4
    .uleb128 6
    .byte 0xf2                  # GNU_implicit_pointer
    .long .Lnowhere - .Linfo + 4
    .byte 0
    .uleb128 0
    .popsection
    .endm

    # p = rdi - 8
    begin shifted
at_shifted:
    mov 16(%rdi), %ecx
    ret
    finish_placed shifted, p, .Lnode_pointer, 3, 0x75, 0x78, 0x9f

    # p = rdi + 8, in two steps
    begin shifted_twice
at_shifted_twice:
    mov 36(%rdi), %ecx
    ret
    finish_placed shifted_twice, p, .Lnode_pointer, 5, 0x75, 0, 0x23, 8, 0x9f

    # p = what rdi was at the entry
    begin entered
    save %rbx
    mov %rdi, %rbx
    xor %edi, %edi
    call *%r8
at_entered:
    mov 16(%rbx), %rcx
    restore %rbx
    ret
    finish_placed entered, p, .Lnode_pointer, 4, 0xa3, 1, 0x55, 0x9f

    # A pair in two registers, and one of which only the first half is there.
    begin halves
at_halves:
    mov 16(%rdi), %rcx
    ret
    finish_placed halves, s, .Lpair, 6, 0x55, 0x93, 8, 0x54, 0x93, 8

    begin first_half
at_first_half:
    mov 16(%rdi), %rcx
    ret
    finish_placed first_half, s, .Lpair, 5, 0x55, 0x93, 8, 0x93, 8

    begin second_half
at_second_half:
    mov 16(%rdi), %rcx
    ret
    finish_placed second_half, s, .Lswapped, 5, 0x93, 8, 0x55, 0x93, 8

    # Half of a pair is in the frame, the other half nowhere: what lies there is something else.
    begin half_in_frame
at_half_in_frame:
    mov -8(%rsp), %rcx
at_behind_half_in_frame:
    mov 16(%rcx), %rdx
    ret
    finish_placed half_in_frame, s, .Lswapped, 6, 0x77, 0x70, 0x93, 8, 0x93, 8

    begin other_half_in_frame
    mov -16(%rsp), %rcx
at_other_half_in_frame:
    mov 16(%rcx), %rdx
    ret
    finish_placed other_half_in_frame, s, .Lswapped, 6, 0x93, 8, 0x77, 0x70, 0x93, 8

    begin half_behind_register
at_half_behind_register:
    mov 8(%r9), %rcx
    ret
    finish_placed half_behind_register, s, .Lswapped, 6, 0x79, 0, 0x93, 8, 0x93, 8
.Lend_text:

    .data
    .globl placed
    .type placed, @object
placed:
    .fill 24, 1, 0
    .size placed, . - placed


    .section .debug_info, "", @progbits
    .uleb128 0
.Linfo_end:
    .section .note.GNU-stack, "", @progbits
