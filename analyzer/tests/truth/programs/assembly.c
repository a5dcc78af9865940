/* Hand-written assembly: no frame information, data between the code, odd and old instructions. */
long cells[64];
unsigned char bytes[64];
long result[8];

long odd_loops(long *cells, long n);
long old_strings(unsigned char *to, const unsigned char *from, long n);
long read_modify_write(long *cells, long *result, long n);
long jump_about(long n, long *cells);
long stack_tricks(long x, long *cells);

__asm__(
    "	.text\n"
    "	.globl odd_loops\n"
    "odd_loops:\n"
    "	mov %rsi, %rcx\n"
    "	xor %eax, %eax\n"
    "	jrcxz 2f\n"
    "1:	add -8(%rdi,%rcx,8), %rax\n"
    "	loop 1b\n"
    "	mov %rsi, %rcx\n"
    "3:	sub $1, %rcx\n"
    "	mov (%rdi,%rcx,8), %rdx\n"
    "	xor %rdx, %rax\n"
    "	test %rcx, %rcx\n"
    "	jnz 3b\n"
    "	mov %rsi, %rcx\n"
    "	mov %rdi, %r8\n"
    "4:	mov (%r8), %rdx\n"
    "	lea 8(%r8), %r8\n"
    "	cmp %rdx, %rax\n"
    "	cmovb -8(%r8), %rax\n"
    "	setb 7(%rdi)\n"
    "	dec %rcx\n"
    "	jne 4b\n"
    "2:	ret\n"
    /* Data in the text that decodes as the start of a long instruction. */
    "	.byte 0x48, 0xb8, 0x0f\n"
    "	.globl old_strings\n"
    "	.type old_strings, @function\n"
    "old_strings:\n"
    "	push %rbx\n"
    "	mov %rdx, %rcx\n"
    "	mov %rdi, %rbx\n"
    "	cld\n"
    "1:	lodsb\n"
    "	add $3, %al\n"
    "	stosb\n"
    "	dec %ecx\n"
    "	jnz 1b\n"
    "	mov %rbx, %rdi\n"
    "	sub %rdx, %rsi\n"
    "	mov %rdx, %rcx\n"
    "	repne cmpsb\n"
    "	mov %rbx, %rdi\n"
    "	mov %rdx, %rcx\n"
    "	shr $3, %rcx\n"
    "	movabs $0x0807060504030201, %rax\n"
    "	rep stosq\n"
    "	movsl\n"
    "	sub $8, %rdi\n"
    "	xlatb\n"
    "	movzbl %al, %eax\n"
    "	pop %rbx\n"
    "	ret\n"
    "	.size old_strings, . - old_strings\n"
    "	.globl read_modify_write\n"
    "	.type read_modify_write, @function\n"
    "read_modify_write:\n"
    "	push %rbp\n"
    "	mov %rsp, %rbp\n"
    "	sub $32, %rsp\n"
    "	mov %rsi, -8(%rbp)\n"
    "1:	mov (%rdi), %rax\n"
    "	lock xadd %rax, 8(%rsi)\n"
    "	xchg %rax, 16(%rsi)\n"
    "	lock cmpxchg %rdx, 24(%rsi)\n"
    "	jne 2f\n"
    "	incl 32(%rsi)\n"
    "2:	adcq $0, 40(%rsi)\n"
    "	rolq $3, (%rdi)\n"
    "	negl 4(%rdi)\n"
    "	imul $5, (%rdi), %rcx\n"
    "	mov %rcx, -16(%rbp)\n"
    "	movw $7, -24(%rbp)\n"
    "	orb $1, -24(%rbp)\n"
    "	addq $8, %rdi\n"
    "	subq $1, %rdx\n"
    "	mov -8(%rbp), %rsi\n"
    "	ja 1b\n"
    "	mov -16(%rbp), %rax\n"
    "	leave\n"
    "	ret\n"
    "	.size read_modify_write, . - read_modify_write\n"
    "	.globl jump_about\n"
    "	.type jump_about, @function\n"
    "jump_about:\n"
    "	xor %eax, %eax\n"
    "1:	mov %edi, %ecx\n"
    "	and $3, %ecx\n"
    "	lea 9f(%rip), %rdx\n"
    "	movslq (%rdx,%rcx,4), %rcx\n"
    "	add %rdx, %rcx\n"
    "	jmp *%rcx\n"
    "	.p2align 2\n"
    "9:	.long 2f - 9b, 3f - 9b, 4f - 9b, 5f - 9b\n"
    "2:	add (%rsi), %rax\n"
    "	jmp 6f\n"
    "3:	cmpq $100, 8(%rsi)\n"
    "	jl 4f\n"
    "	addq %rax, 16(%rsi)\n"
    "4:	add 24(%rsi), %rax\n"
    "	js 6f\n"
    "	.byte 0xeb, 0x01, 0xe8\n" /* jmp over the first byte of a call */
    "5:	add 32(%rsi), %rax\n"
    "6:	dec %rdi\n"
    "	jns 1b\n"
    "	ret\n"
    "	.size jump_about, . - jump_about\n"
    "	.globl stack_tricks\n"
    "	.type stack_tricks, @function\n"
    "stack_tricks:\n"
    "	pushq (%rsi)\n"
    "	popq 8(%rsi)\n"
    "	call 1f\n"
    "1:	pop %rax\n"
    "	lea 2f - 1b(%rax), %rax\n"
    "	push %rax\n"
    "	ret\n"
    "	ud2\n"
    "2:	enter $16, $0\n"
    "	mov %rdi, -8(%rbp)\n"
    "	pushf\n"
    "	pop %rdx\n"
    "	lea 3f(%rip), %rcx\n"
    "	mov %rcx, -16(%rbp)\n"
    "	call *-16(%rbp)\n"
    "	mov -8(%rbp), %rax\n"
    "	leave\n"
    "	ret\n"
    "3:	addq $1, 24(%rsi)\n"
    "	bswap %rdi\n"
    "	movnti %rdi, 32(%rsi)\n"
    "	prefetcht0 40(%rsi)\n"
    "	ret $0\n"
    "	.size stack_tricks, . - stack_tricks\n");

int main(void)
{
    unsigned long total = 0;
    for (long i = 0; i < 64; i++) {
        cells[i] = i * 37 % 101;
        bytes[i] = (unsigned char)(i * 11);
    }
    for (long i = 0; i < 24; i++) {
        total += (unsigned long)odd_loops(cells, 1 + i % 9);
        total += (unsigned long)old_strings(bytes, bytes + 24, 8 + i % 7);
        total += (unsigned long)read_modify_write(cells + i, result, 2 + i % 5);
        total += (unsigned long)jump_about(12 + i % 4, cells);
        total += (unsigned long)stack_tricks(i, cells + 8);
    }
    return (int)(total + (unsigned long)result[1]) & 1;
}
