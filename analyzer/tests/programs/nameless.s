# Debug information by hand: a variable `named`, and behind it one without a name.
    .text
    .globl read_long
    .type read_long, @function
read_long:
    mov (%rdi), %rax
    ret
    .size read_long, . - read_long
.Lend_text:
    .data
    .balign 16
    .globl named
named: .quad 7
    .quad 0
    .globl text
text: .asciz "a string literal, nameless"
    .section .debug_info, "", @progbits
    .long .Linfo_end - .Linfo
.Linfo:
    .value 4
    .long .Labbrev
    .byte 8
    .uleb128 1                  # compile_unit
    .asciz "nameless.c"
    .value 12                   # DW_LANG_C99
    .quad read_long
    .quad .Lend_text - read_long
.Llong:
    .uleb128 2                  # base_type
    .asciz "long int"
    .byte 8
    .byte 5
    .uleb128 3                  # variable with a name
    .asciz "named"
    .long .Llong - .Linfo + 4
    .byte 9
    .byte 3
    .quad named
    .uleb128 4                  # variable without a name
    .long .Llong - .Linfo + 4
    .byte 9
    .byte 3
    .quad text
    .uleb128 0
.Linfo_end:
    .section .debug_abbrev, "", @progbits
.Labbrev:
    .uleb128 1
    .uleb128 0x11
    .byte 1
    .uleb128 0x03, 0x08, 0x13, 0x05, 0x11, 0x01, 0x12, 0x07, 0, 0
    .uleb128 2
    .uleb128 0x24
    .byte 0
    .uleb128 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0
    .uleb128 3
    .uleb128 0x34
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0, 0
    .uleb128 4
    .uleb128 0x34
    .byte 0
    .uleb128 0x49, 0x13, 0x02, 0x18, 0, 0
    .uleb128 0
    .section .note.GNU-stack, "", @progbits
